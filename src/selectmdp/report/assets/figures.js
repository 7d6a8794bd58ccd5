// The figures: our curves with their intervals beside the published levels, a table that is also the
// legend, who beats whom, and every run.

function showFigure(figure) {
  const several = figure.worlds.length > 1;
  const hidden = new Set(); // what the legend has switched off
  const time = { minutes: false };
  const redraws = [];
  const again = () => redraws.forEach((redraw) => redraw());
  const section = html("section", { class: "card figure", id: `figure-${figure.name}` });
  const seeds = figure.worlds.flatMap((world) => world.series.map((each) => each.seeds)).filter((count) => count > 0);
  const title = html("h2", {}, `Figure ${figure.name}`, html("span", { class: "quiet" }, ` ${figure.title}`));
  section.append(
    html("div", { class: "head" }, title, timeSwitch(time, again)),
    ...figureNote(figure, seeds),
  );
  const charts = html("div", { class: "charts" });
  section.append(html("div", { class: "pair" }, charts, legend(figure, hidden, again)));
  document.getElementById("figures").append(section); // in its place first: charts ask how wide it is
  if (several) redraws.push(chart(charts.appendChild(html("div", {})), () => dots(figure, hidden)));
  const curves = several ? html("div", { class: "three" }) : charts;
  if (several) section.append(curves);
  for (const world of figure.worlds) {
    const holder = html("div", {});
    curves.append(several ? html("figure", {}, html("figcaption", {}, `N = ${world.N}`), holder) : holder);
    redraws.push(chart(holder, () => curvesOf(figure, world, hidden, time)));
  }
  section.append(improvements(figure), runsTable("Every run", figure.runs), commands(figure));
}

/** What the numbers are of: a sentence or two, and the facts behind them. */
function figureNote(figure, seeds) {
  const [least, most] = [Math.min(...seeds), Math.max(...seeds)];
  const some = seeds.length > 0;
  const steps = figure.steps.map((each) => each.toLocaleString("en")).join(" or ");
  const over = most === 1 ? "one seed" : `${least === most ? "" : `${least} to `}${most} seeds, shaded: 95 % interval (Student’s t)`;
  const read = `Reward of a step (${figure.unit}), mean over ${over}. Hollow and dashed: published.`;
  const facts = [
    worldOf(figure.world),
    `${some ? `ours: ${steps} steps, ` : ""}published: ${figure.published_steps.toLocaleString("en")} steps`,
    ...Object.entries(figure.evaluations ?? {}).map(evaluation),
  ];
  const told = [some ? read : "Not run yet: what the paper published.", facts.join(" · ")];
  if (some && figure.note !== "") told.push(figure.note);
  return told.map((text) => html("p", { class: "quiet note" }, text));
}

/** What a reward is the mean of. */
function evaluation([what, [episodes, steps]]) {
  const place = { curve: "a curve’s points", final: "the table" }[what];
  return `${place}: ${episodes} episodes of ${steps.toLocaleString("en")} steps`;
}

function worldOf({ dynamics, U, K, C }) {
  return `Dynamics “${dynamics}”, U = ${U}, K = ${K}, C = ${C}`;
}

/** One world: reward over steps, or over minutes. */
function curvesOf(figure, world, hidden, time) {
  const shown = world.series.filter((each) => !hidden.has(each.algorithm));
  const levels = Object.entries(world.references).filter(([name]) => !hidden.has(name));
  const lines = shown.map((each) => ({
    name: each.algorithm,
    level: each.published,
    points: each.curve.map(([step, minutes, ...rest]) => [time.minutes ? minutes ?? 0 : step, ...rest]),
  }));
  const xs = lines.flatMap(({ points }) => points.map(([x]) => x));
  const known = [...lines.map(({ level }) => level), ...levels.map(([, level]) => level)].filter((y) => y !== null);
  const heights = roomFor(lines.flatMap(({ points }) => points.map(([, ...triple]) => triple)), known);
  return {
    name: `Learning curves of figure ${figure.name}, N = ${world.N}; the table has their ends`,
    x: {
      low: 0, high: Math.max(...xs, 0) || 1, label: time.minutes ? "minutes of a run" : "steps",
      ticks: xs.length > 0 ? undefined : [],
    },
    y: spanned(heights, { label: `reward of a step (${figure.unit})` }),
    room: 44,
    stops: [...new Set(xs)].sort((a, b) => a - b),
    draw: (plot, stop) => [
      ...levels.map(([name, level]) => reference(plot, name, level)),
      ...lines.map(({ name, level }, i) => publishedLevel(plot, name, level, i)),
      ...lines.map(({ name, points }, i) => joined(plot, name, points, { every: 5, first: i, stop })),
      ...levels.map(([name, level]) => referenceName(plot, name, level, lines)),
    ],
    read: (stop) => reading(time.minutes ? `${fixed(stop, 1)} minutes` : `${stop.toLocaleString("en")} steps`, lines, ({ points }) => nearest(points, stop)),
  };
}

function reference(plot, name, level) {
  const y = plot.py(level);
  return svg("line", { x1: plot.left, x2: plot.right, y1: y, y2: y, class: `reference ${name}` });
}

/** Above or below its line, where the fewest points of curves are in the way. */
function referenceName(plot, name, level, lines) {
  const [wide, high] = [48, 14];
  const taken = lines.flatMap(({ points }) => points.map(([x, value]) => [plot.px(x), plot.py(value)]));
  const levels = lines.map((line) => plot.py(line.level));
  const within = (low, length) => (at) => at > low - 5 && at < low + length + 5;
  const places = [];
  for (let x = plot.right - wide - 4; x >= plot.left + 4; x -= wide / 2) {
    for (const y of [plot.py(level) - high - 2, plot.py(level) + 3]) {
      const [beside, along] = [within(x, wide), within(y, high)];
      const hits = taken.filter(([at, up]) => beside(at) && along(up)).length;
      const outside = y < plot.top || y + high > plot.bottom;
      places.push({ x, y, cost: 10 * hits + levels.filter(along).length + (outside ? 100 : 0) });
    }
  }
  const best = places.reduce((one, other) => (other.cost < one.cost ? other : one));
  return svg("text", { x: best.x, y: best.y + high - 3, class: "quiet", "data-reference": name }, name);
}

/** A dashed line in the curve's colour, and its hollow marker to the right. */
function publishedLevel(plot, name, level, index) {
  const y = plot.py(level);
  const x = plot.right + 9 + 11 * (index % 3);
  const { color } = look(name);
  const line = svg("line", { x1: plot.left, x2: x, y1: y, y2: y, style: `stroke:${color}`, class: "published" });
  return svg("g", { "data-published": name }, line, mark(name, x, y, true));
}

/** What the lines have where `at` finds a point of them, the best first. */
function reading(head, lines, at) {
  const rows = lines.flatMap((line) => {
    const [x, ...triple] = at(line) ?? [];
    return x === undefined ? [] : [{ name: line.name, triple, text: plusMinus(triple), swatch: swatch(line.name) }];
  });
  return { head, rows: rows.sort((a, b) => b.triple[0] - a.triple[0]) };
}

/** Several worlds: where each algorithm ends at each N, beside where it was published to. */
function dots(figure, hidden) {
  const names = figure.worlds[0].series.map((each) => each.algorithm).filter((name) => !hidden.has(name));
  const aside = (index) => (index - (names.length - 1) / 2) * 0.24;
  const found = figure.worlds.flatMap((world, place) =>
    world.series
      .filter((each) => names.includes(each.algorithm))
      .map((each) => ({ ...each, at: place + aside(names.indexOf(each.algorithm)), place })),
  );
  const heights = found.flatMap((each) => [each.published, ...(each.mean ?? [])]);
  const places = figure.worlds.map((_, place) => place);
  return {
    name: `Final rewards of figure ${figure.name} over N; the table has the numbers`,
    x: {
      low: -0.5, high: places.length - 0.5, label: "N", ticks: places,
      names: new Map(figure.worlds.map((world, place) => [place, String(world.N)])),
    },
    y: spanned(heights.filter((y) => y !== null), { label: `reward of a step (${figure.unit})` }),
    stops: places,
    draw: (plot) => found.map((each) => dot(plot, each)),
    read: (stop) => ({
      head: `N = ${figure.worlds[stop].N}`,
      rows: found
        .filter((each) => each.place === stop && each.mean)
        .map((each) => ({ name: each.algorithm, text: plusMinus(each.mean), swatch: swatch(each.algorithm) })),
    }),
  };
}

function dot(plot, { algorithm, mean, published, at }) {
  const { color } = look(algorithm);
  const [x, beside] = [plot.px(at), plot.px(at) + 14];
  const stroke = { style: `stroke:${color}` };
  const y = plot.py(published);
  const parts = [svg("line", { x1: x - 7, x2: beside + 7, y1: y, y2: y, ...stroke, class: "published" })];
  parts.push(mark(algorithm, beside, y, true));
  if (mean) {
    const [value, low, high] = mean;
    if (low !== null) parts.push(svg("line", { x1: x, x2: x, y1: plot.py(low), y2: plot.py(high), ...stroke, class: "whisker" }));
    parts.push(mark(algorithm, x, plot.py(value)));
  }
  return svg("g", { "data-line": algorithm }, ...parts);
}

/** Steps or minutes along the curves. */
function timeSwitch(time, again) {
  const box = html("p", { class: "switch", role: "group", "aria-label": "Horizontal axis" });
  for (const [text, minutes] of [["steps", false], ["minutes", true]]) {
    const button = html("button", { type: "button", "aria-pressed": String(time.minutes === minutes) }, text);
    button.addEventListener("click", () => {
      time.minutes = minutes;
      for (const each of box.children) each.setAttribute("aria-pressed", String(each === button));
      again();
    });
    box.append(button);
  }
  return box;
}
