// A chart: axes with round numbers, what is drawn between them, and a reading at the place that is
// pointed at, touched, or moved to with the arrow keys. It is drawn in the page's own pixels, anew
// whenever its place is wider or narrower, so that text keeps its size.

const MARGIN = { top: 30, bottom: 46, left: 52 };

/**
 * `describe()` tells { name, x, y, room, stops, draw(plot), read(stop) }: an axis is { low, high,
 * label, log, ticks }, `room` what is kept free to the right, `stops` the places that can be read.
 * Gives a function that draws it again.
 */
function chart(holder, describe) {
  const tip = html("div", { class: "tip", "aria-live": "polite", hidden: "" });
  let stop = null; // the place that is read
  let plot = null;
  const redraw = () => {
    const width = Math.max(Math.round(holder.clientWidth), 240);
    plot = planned(describe(), width);
    if (stop !== null && !plot.stops.includes(stop)) stop = null;
    holder.replaceChildren(drawn(plot, stop), tip);
    showTip(tip, plot, stop);
  };
  const read = (place) => {
    if (place === stop) return;
    stop = place;
    redraw();
  };
  const nearest = (event) => {
    const at = event.clientX - holder.getBoundingClientRect().left;
    const far = (place) => Math.abs(plot.px(place) - at);
    return plot.stops.reduce((best, place) => (far(place) < far(best) ? place : best));
  };
  const follow = (event) => plot.stops.length > 0 && read(nearest(event));
  holder.addEventListener("pointermove", follow);
  holder.addEventListener("pointerdown", follow);
  holder.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && read(null));
  holder.addEventListener("blur", () => read(null));
  holder.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") read(null);
    if (move === undefined || plot.stops.length === 0) return;
    event.preventDefault();
    const from = plot.stops.indexOf(stop);
    const next = stop === null ? (move > 0 ? 0 : plot.stops.length - 1) : from + move;
    read(plot.stops[Math.min(Math.max(next, 0), plot.stops.length - 1)]);
  });
  holder.classList.add("chart");
  holder.setAttribute("tabindex", "0");
  new ResizeObserver(redraw).observe(holder);
  redraw();
  return redraw;
}

/** Where everything goes. */
function planned(told, width) {
  const height = Math.round(Math.min(Math.max(width * 0.62, 250), 400));
  const right = width - (told.room ?? 14);
  const bottom = height - MARGIN.bottom;
  return {
    ...told, width, height, right, bottom,
    left: MARGIN.left, top: MARGIN.top,
    px: scale(told.x, MARGIN.left, right),
    py: scale(told.y, bottom, MARGIN.top),
  };
}

function scale({ low, high, log }, start, end) {
  const unit = log ? Math.log : (value) => value;
  const [from, to] = [unit(low), unit(high)];
  return (value) => start + ((unit(value) - from) / (to - from || 1)) * (end - start);
}

function drawn(plot, stop) {
  const { width, height, left, right, top, bottom, px, py, x, y } = plot;
  const lines = [];
  const label = (text, where, side) => svg("text", { ...where, class: side }, text);
  for (const tick of y.ticks ?? ticks(y, 6)) {
    lines.push(svg("line", { x1: left, x2: right, y1: py(tick), y2: py(tick), class: "grid" }));
    lines.push(label(short(tick), { x: left - 8, y: py(tick) + 4 }, "left"));
  }
  for (const tick of x.ticks ?? ticks(x, width / 90)) {
    const text = x.names?.get(tick) ?? short(tick);
    lines.push(svg("line", { x1: px(tick), x2: px(tick), y1: bottom, y2: bottom + 5, class: "tick" }));
    lines.push(label(text, { x: px(tick), y: bottom + 19 }, "below"));
  }
  lines.push(svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }));
  lines.push(label(x.label, { x: (left + right) / 2, y: height - 8 }, "below quiet"));
  lines.push(label(y.label, { x: 4, y: 14 }, "first quiet"));
  if (stop !== null) {
    lines.push(svg("line", { x1: px(stop), x2: px(stop), y1: top, y2: bottom, class: "cursor" }));
  }
  const frame = { viewBox: `0 0 ${width} ${height}`, width, height };
  return svg("svg", { ...frame, role: "img", "aria-label": plot.name }, ...lines, ...plot.draw(plot, stop));
}

/** The reading beside the cursor, on the side where there is room. */
function showTip(tip, plot, stop) {
  tip.hidden = stop === null;
  if (stop === null) return;
  const { head, rows } = plot.read(stop);
  const table = rows.map(({ swatch, name, text }) =>
    html("tr", {}, html("td", {}, swatch), html("td", {}, name), html("td", { class: "number" }, text)),
  );
  tip.replaceChildren(html("b", {}, head), html("table", {}, ...table));
  const middle = (plot.left + plot.right) / 2;
  const after = plot.px(stop) < middle;
  tip.style.left = after ? `${plot.px(stop) + 12}px` : "auto";
  tip.style.right = after ? "auto" : `${plot.width - plot.px(stop) + 12}px`;
}

/** An axis that has all these numbers between its ends, and 0 if they are not far from it. */
function spanned(numbers, { log = false, zero = true, ...rest }) {
  let [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  if (numbers.length === 0) [low, high] = log ? [1, 10] : [0, 1];
  if (log) return { low: low / 1.25, high: high * 1.25, log, ...rest };
  if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  const room = 0.04 * (high - low || 1);
  return { low: zero && low === 0 ? 0 : low - room, high: high + room, ...rest };
}

/** Heights to show: means, what is beside them, and intervals as far as they do not dwarf those. */
function roomFor(triples, beside = []) {
  const means = [...triples.map(([mean]) => mean), ...beside];
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const room = (high - low) / 4;
  const ends = triples.flatMap(([, ...interval]) => interval).filter((end) => end !== null && end !== undefined);
  return [...means, ...ends.map((end) => Math.min(Math.max(end, low - room), high + room))];
}

/** About so many round numbers between the ends. */
function ticks({ low, high, log }, count) {
  if (log) return logTicks(low, high);
  const rough = (high - low) / Math.max(count, 2);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((times) => times * power >= rough * 0.999));
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) {
    found.push(Number((i * step).toPrecision(12)));
  }
  return found;
}

/** 1, 2 and 5 times a power of ten over two decades; powers of ten alone over more. */
function logTicks(low, high) {
  const times = high / low < 300 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const each of times) {
      const value = Number((each * 10 ** power).toPrecision(6));
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found;
}

/** A number on an axis: 600k, 1.5M, 0.25. */
function short(number) {
  const size = Math.abs(number);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return `${Number((number / unit).toPrecision(4))}${name}`;
  }
  return String(Number(number.toPrecision(4))).replace("-", "−");
}
