// Every algorithm over all worlds at once.

function showAcross(across) {
  if (across === null) return;
  $("across").hidden = false;
  const { draw, head } = between01(across.rows.map(({ iqm: [, low, high] }) => [low, high]).flat());
  const cells = across.rows.map(({ algorithm, iqm, better, won }) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, algorithm),
      html("td", {}, draw(iqm)),
      html("td", { class: "number" }, between(iqm)),
      html("td", { class: "number" }, better === null ? "" : beaten(better, won)),
    ),
  );
  const heads = ["", head, "IQM [95 %, bootstrap]", `better than ${across.rival} [95 %, bootstrap]`];
  const worlds = across.worlds.join(", ");
  $("across").append(
    html("p", { class: "quiet note" }, `Figures ${worlds}. A seed’s final reward is 0 where it is that of random, 1 where it is that of greedy; the interquartile mean is over worlds and seeds, its bootstrap draws each world’s seeds by themselves.`),
    scrolled(tableOf("finals", heads, cells)),
  );
}

/** Draws intervals on one scale with the edges random, 0, and greedy, 1; `head` names these. */
function between01(numbers) {
  const [width, height, side] = [160, 18, 24]; // at the sides there is room for half a name
  const x = scale(spanned([...numbers, 0, 1], { zero: false }), side, width - side);
  const edges = [[0, "random"], [1, "greedy"]];
  const size = { width, class: "forest plain" };
  const line = ([at]) => svg("line", { x1: x(at), x2: x(at), y1: 0, y2: height, class: "edge" });
  const name = ([at, text]) => svg("text", { x: x(at), y: 12, "text-anchor": "middle" }, text);
  const draw = ([value, low, high]) =>
    svg("svg", { ...size, height, "aria-hidden": "true" }, ...edges.map(line), ...dotted(x, { value, low, high }));
  const label = "Interquartile means with random at 0 and greedy at 1";
  return { draw, head: svg("svg", { ...size, height: 16, role: "img", "aria-label": label }, ...edges.map(name)) };
}

/** A share with its interval; where all pairs of runs in a world agree there is none but their count. */
function beaten([value, low, high], [won, pairs]) {
  if (low === high) return `${percent(value)}, ${won} of ${pairs} pairs`;
  return `${percent(value)} [${percent(low)}, ${percent(high)}]`;
}
