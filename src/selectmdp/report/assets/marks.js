// How each algorithm looks, the same in all figures: a colour that most eyes can tell from the
// others, and a marker, which all can. Full is ours, hollow is published.

const LOOKS = {
  "isq-p": ["--c-p", "circle"],
  "isq-u": ["--c-u", "square"],
  "isq-i": ["--c-i", "up"],
  "isq-i-1": ["--c-i1", "down"],
  myopic: ["--c-m", "diamond"],
  eq: ["--c-e", "cross"],
  rsq: ["--c-r", "plus"],
  idqn: ["--c-d", "star"],
  vanilla: ["--c-m", "diamond"],
  sorting: ["--c-e", "square"],
  "pairs, trained at 50": ["--c-p", "circle"],
  "pairs, trained at 200": ["--c-u", "square"],
  "means, trained at 50": ["--c-m", "diamond"],
  "means, trained at 200": ["--c-e", "cross"],
  "sums, trained at 50": ["--c-i", "up"],
  "sums, trained at 200": ["--c-i1", "down"],
  fast: ["--c-p", "circle"],
  paper: ["--c-u", "square"],
};
const PATHS = {
  circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
  square: "M-3.6-3.6h7.2v7.2h-7.2z",
  up: "M0-4.8L4.6 3.4H-4.6z",
  down: "M0 4.8L4.6-3.4H-4.6z",
  diamond: "M0-5.2L5.2 0L0 5.2L-5.2 0z",
  cross: "M-5.2-2.8L-2.8-5.2L0-2.4L2.8-5.2L5.2-2.8L2.4 0L5.2 2.8L2.8 5.2L0 2.4L-2.8 5.2L-5.2 2.8L-2.4 0z",
  plus: "M-1.8-5.4h3.6v3.6h3.6v3.6h-3.6v3.6h-3.6v-3.6h-3.6v-3.6h3.6z",
  star: "M0-6.2L1.8-2L6-1.9L2.6.9L3.8 5.2L0 2.7L-3.8 5.2L-2.6.9L-6-1.9L-1.8-2z",
};

function look(name) {
  const [color, marker] = LOOKS[name] ?? ["--quiet", "circle"];
  return { color: `var(${color})`, path: PATHS[marker] };
}

/** A marker at a place; a hollow one is what was published. */
function mark(name, x, y, hollow = false) {
  const { color, path } = look(name);
  const style = hollow ? `fill:var(--card);stroke:${color}` : `fill:${color};stroke:var(--card)`;
  return svg("path", { d: path, transform: `translate(${x} ${y})`, style, class: "mark" });
}

/** A short piece of its line with the marker, for tables and readings. */
function swatch(name) {
  const line = svg("line", { x1: 1, x2: 25, y1: 7, y2: 7, style: `stroke:${look(name).color}`, class: "curve" });
  const reference = name === "random" || name === "greedy";
  if (reference) line.setAttribute("class", `reference ${name}`);
  const parts = reference ? [line] : [line, mark(name, 13, 7)];
  return svg("svg", { width: 26, height: 14, class: "swatch", "aria-hidden": "true" }, ...parts);
}

/** Points joined by a line, with a band for their intervals and a marker here and there. */
function joined(plot, name, points, { every = 1, first = 0, stop = null } = {}) {
  const { px, py } = plot;
  const { color } = look(name);
  const at = (x, y) => `${px(x).toFixed(1)},${Math.min(Math.max(py(y), plot.top), plot.bottom).toFixed(1)}`;
  const parts = [];
  const sure = points.filter(([, , low]) => low !== null && low !== undefined);
  if (sure.length > 1) {
    const top = sure.map(([x, , , high]) => at(x, high));
    const bottom = sure.map(([x, , low]) => at(x, low)).reverse();
    parts.push(svg("polygon", { points: [...top, ...bottom].join(" "), style: `fill:${color}`, class: "band" }));
  }
  const read = stop === null ? undefined : nearest(points, stop);
  const line = points.map(([x, value]) => at(x, value)).join(" ");
  parts.push(svg("polyline", { points: line, style: `stroke:${color}`, class: "curve" }));
  points.forEach(([x, value], i) => {
    const shown = i % every === first % every || i === points.length - 1 || points[i] === read;
    if (shown) parts.push(mark(name, px(x), py(value)));
  });
  return svg("g", { "data-line": name }, ...parts);
}

/** The point of a line that is nearest to a place; none where the line is over, or not begun. */
function nearest(points, stop) {
  const gaps = points.slice(1).map(([x], i) => x - points[i][0]);
  const far = ([x]) => Math.abs(x - stop);
  const best = points.reduce((one, other) => (far(other) < far(one) ? other : one), points[0]);
  return best && far(best) <= Math.max(...gaps, 0) ? best : undefined;
}

/** `0.761 ± 0.021`, or without the interval where there is none. */
function plusMinus(triple, digits = 3) {
  if (!triple) return "–";
  const [value, low, high] = triple;
  const half = low === null || low === undefined ? "" : ` ± ${fixed((high - low) / 2, digits)}`;
  return fixed(value, digits) + half;
}

/** `0.761 [0.740, 0.782]`. */
function between([value, low, high], digits = 3) {
  const ends = low === null || low === high ? "" : ` [${fixed(low, digits)}, ${fixed(high, digits)}]`;
  return fixed(value, digits) + ends;
}

function fixed(number, digits) {
  return number.toFixed(digits).replace("-", "−");
}
