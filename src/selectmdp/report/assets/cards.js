// One card for each player: its world with the picks so far, and what it earns.

const FAINTEST = 0.85; // of a fill whose colour tells a value
const NEWEST = { outline: "#111111", width: 4, line: 4 };
const CLOSED = { fill: "#d8d8d8", outline: "#a0a0a0", color: "#a0a0a0" };

for (const player of data.players) {
  let sum = 0;
  player.totals = player.rewards.map((reward) => (sum += reward));
}

/** What is shown, in a few words each. */
function writeHead() {
  const { num_items: items, num_context: context, num_select: picks, learned } = data;
  const other = learned.num_items !== items || learned.num_select !== picks;
  const facts = [
    data.run,
    data.step === null ? "" : `trained for ${data.step.toLocaleString("en")} steps`,
    `N = ${items}, ${context > 0 ? `U = ${context}, ` : ""}K = ${picks}`,
    other ? `learned with N = ${learned.num_items}, K = ${learned.num_select}` : "",
    data.dynamics === null ? "" : `rules: ${data.dynamics}`,
    `seed ${data.seed}`,
  ];
  $("title").textContent = document.title;
  $("unit").textContent = `(${data.unit})`;
  const told = facts.filter((fact) => fact !== "").join(" · ");
  $("facts").textContent = told.replaceAll(" = ", "\u00a0=\u00a0"); // not broken across lines
}

/** The card of a player; gives a function that shows a pick of a step. */
function makeCard(player, index) {
  const card = $("player").content.cloneNode(true).firstElementChild;
  const find = (name) => card.querySelector(name);
  card.classList.add(`p${index}`);
  find(".name").textContent = player.name;
  find(".role").textContent = player.values === null ? "" : "trained";
  find("canvas").setAttribute("aria-label", `The world under ${player.name}, with its picks`);
  $(index === 0 ? "trained" : "others").append(card);
  const rewards = data.players.flatMap((each) => each.rewards);
  const markBar = barsPlot(find(".bars"), player.rewards, data.steps, range(rewards));
  const showScale = player.values === null ? () => {} : makeScale(card, player);
  const picture = makePicture(find("canvas"));
  const length = player.rewards.length;
  const legend = index === 0 ? data.legend : ""; // once is enough
  return (step, phase) => {
    const over = step >= length; // a true terminal: the last picture stays
    const [now, pick] = over ? [length - 1, data.num_select - 1] : [step, phase];
    const earned = pick === data.num_select - 1;
    const scene = sceneOf(player.frames[now][pick]);
    const total = player.totals[earned ? now : now - 1] ?? 0;
    picture(scene, painter(player, now, pick));
    showScale(now, pick);
    markBar(now, earned);
    const told = over ? `ended after ${length} steps` : scene.caption;
    find(".caption").textContent = [told, legend].filter((text) => text !== "").join(" · ");
    find(".earned").textContent = over ? "–" : earned ? brief(player.rewards[now]) : "…";
    find(".total").textContent = brief(total);
    find(".mean").textContent = now + earned > 0 ? brief(total / (now + earned)) : "–";
  };
}

/** A canvas as wide as its place; gives a function that shows a scene on it. */
function makePicture(canvas) {
  let redraw = () => {};
  new ResizeObserver(() => redraw()).observe(canvas);
  return (scene, paint) => {
    const [x0, y0, x1, y1] = scene.bounds;
    redraw = () => {
      canvas.style.setProperty("--aspect", (x1 - x0) / (y1 - y0));
      const width = Math.round(canvas.clientWidth * Math.max(devicePixelRatio, 2)); // 2: for print
      const height = Math.round((width * (y1 - y0)) / (x1 - x0));
      if (canvas.width !== width) canvas.width = width;
      if (canvas.height !== height) canvas.height = height;
      drawScene(canvas, scene, paint);
    };
    redraw();
  };
}

/** The scale of a card's values; gives a function that shows those of a pick. */
function makeScale(card, player) {
  const section = $("scale").content.cloneNode(true).firstElementChild;
  card.querySelector("canvas").after(section);
  const showValues = scalePlot(section);
  return (step, phase) => showValues(player.values[step][phase], player.picks[step][phase][0]);
}

/** A frame with all that it names by number. */
function sceneOf([stage, ...runs]) {
  const shapes = [];
  for (let i = 0; i < runs.length; i += 2) {
    for (let j = 0; j < runs[i + 1]; j++) shapes.push(shapeOf(data.shapes[runs[i] + j]));
  }
  return { ...data.stages[stage], reference: data.reference, shapes };
}

function shapeOf([style, item, ...numbers]) {
  const shape = { ...data.styles[style], item };
  data.places[shape.shape].forEach((name, i) => (shape[name] = numbers[i]));
  return shape;
}

/** How a player's shapes are coloured: by value; picks made before keep the world's colours. */
function painter(player, step, phase) {
  if (player.values === null) return (shape) => shape;
  const share = shares(player.values[step][phase]);
  const picks = player.picks[step].slice(0, phase + 1).map(([item]) => item);
  const newest = picks.pop();
  return (shape) => {
    if (shape.item < 0 || picks.includes(shape.item)) return shape;
    if (share[shape.item] === null) return { ...shape, ...CLOSED };
    const ring = shape.item === newest ? NEWEST : {};
    // A pick by chance may be pale, and the world writes on picks in white.
    if (shape.item === newest && share[newest] < 0.5) return { ...shape, ...ring };
    const color = rampColor(share[shape.item]);
    return { ...shape, fill: color, color, opacity: Math.max(shape.opacity, FAINTEST), ...ring };
  };
}
