// Small plots beside the world: rewards by step, and the values of a phase on their scale. They are
// drawn once in units of the data; what moves with the replay is a cursor.

const RAMP = [[247, 243, 238], [236, 199, 219], [207, 131, 194], [137, 62, 172], [52, 12, 92]];

/** The colour of a share between 0, the worst, and 1, the best. */
function rampColor(share) {
  const place = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const low = Math.min(Math.floor(place), RAMP.length - 2);
  const mix = RAMP[low].map((part, i) => part + (place - low) * (RAMP[low + 1][i] - part));
  return `rgb(${mix.map(Math.round).join(",")})`;
}

/** An element of a picture in lines. */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Curves of the sums so far; gives a function that moves the cursor to a number of steps. */
function totalsPlot(card, players, steps) {
  const holder = card.querySelector(".chart");
  const curves = players.map((player) => [0, ...player.totals]);
  const [low, high] = range(curves.flat());
  const line = (curve) => curve.map((sum, step) => `${step},${high - sum}`).join(" ");
  const draw = (extra) =>
    curves.map((curve, i) => svg("polyline", { points: line(curve), class: `line p${i} ${extra}` }));
  const past = svg("rect", { x: 0, y: 0, width: 0, height: high - low });
  const cursor = svg("line", { y1: 0, y2: high - low, class: "cursor" });
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${steps} ${high - low}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("clipPath", { id: "past" }, past),
    svg("line", { x1: 0, x2: steps, y1: high, y2: high, class: "axis" }),
    ...draw("faint"),
    svg("g", { "clip-path": "url(#past)" }, ...draw("")),
    cursor,
  );
  holder.append(picture);
  card.querySelector(".legend").append(...players.map(legendEntry));
  label(holder, "high", brief(high));
  label(holder, "zero", low < 0 ? brief(low) : "0");
  label(holder, "end", `step ${steps}`);
  return (done) => {
    past.setAttribute("width", done);
    cursor.setAttribute("x1", done);
    cursor.setAttribute("x2", done);
  };
}

/** A bar for the reward of each step; gives a function that marks the step of this number. */
function barsPlot(holder, rewards, steps, [low, high]) {
  const bars = rewards.map((reward, step) =>
    svg("rect", {
      x: step + 0.12, width: 0.76, y: high - Math.max(reward, 0),
      height: Math.max(Math.abs(reward), (high - low) / 60),
    }),
  );
  const frame = { viewBox: `0 0 ${steps} ${high - low}`, preserveAspectRatio: "none" };
  holder.append(svg("svg", { ...frame, "aria-hidden": "true" }, ...bars));
  return (now, earned) =>
    bars.forEach((bar, step) => {
      const past = step < now || (step === now && earned);
      bar.setAttribute("class", step === now ? "now" : past ? "past" : "");
    });
}

/** The colours with a mark for each item; gives a function that shows the values of a phase. */
function scalePlot(section) {
  const stops = RAMP.map((part, i) => `rgb(${part}) ${(100 * i) / (RAMP.length - 1)}%`);
  const strip = section.querySelector(".strip");
  strip.style.background = `linear-gradient(to right, ${stops.join(",")})`;
  return (values, pick) => {
    const share = shares(values);
    const marks = share.flatMap((at, item) => (at === null ? [] : [mark(at, item === pick)]));
    strip.replaceChildren(...marks);
    const known = values.filter((value) => value !== null);
    const ends = known.length === 0 ? ["", ""] : [Math.min(...known), Math.max(...known)].map(brief);
    section.querySelector(".low").textContent = `worst ${ends[0]}`;
    section.querySelector(".high").textContent = `best ${ends[1]}`;
  };
}

/** Where each value lies between the smallest, 0, and the largest, 1; alone it is the largest. */
function shares(values) {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  return values.map((value) =>
    value === null ? null : high > low ? (value - low) / (high - low) : 1,
  );
}

/** From the least, or 0, to the most, or 0. */
function range(numbers) {
  const [low, high] = [Math.min(0, ...numbers), Math.max(0, ...numbers)];
  return high > low ? [low, high] : [0, 1];
}

/** A number in about four figures; a whole one as it is. */
function brief(number) {
  if (Number.isInteger(number)) return number.toLocaleString("en");
  const size = Math.abs(number);
  return number.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

function mark(share, picked) {
  const element = document.createElement("i");
  element.className = picked ? "picked" : "";
  element.style.left = `${100 * share}%`;
  return element;
}

function legendEntry(player, index) {
  const line = svg("line", { x1: 0, x2: 28, y1: 6, y2: 6, class: `line p${index}` });
  const entry = document.createElement("span");
  entry.append(svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, line), player.name);
  return entry;
}

function label(holder, name, text) {
  const element = document.createElement("span");
  element.className = `number quiet ${name}`;
  element.textContent = text;
  holder.append(element);
}
