// Every algorithm over all worlds at once.

function showAcross(across) {
  if (across === null) return;
  $("across").hidden = false;
  const rows = across.rows.map(({ algorithm, iqm, better, won }) => {
    const [value, low, high] = iqm;
    const drawn = { value, low, high, least: null, most: null, verdict: "holds" };
    return { algorithm, iqm, better, won, drawn };
  });
  const draw = forest([...rows.map((row) => row.drawn), { low: 0, high: 1, least: null, most: null }]);
  const cells = rows.map(({ algorithm, iqm, better, won, drawn }) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, algorithm),
      html("td", { class: "number" }, between(iqm)),
      html("td", {}, draw(drawn)),
      html("td", { class: "number" }, better === null ? "" : beaten(better, won)),
    ),
  );
  const heads = ["", "IQM [95 %, bootstrap]", "", `better than ${across.rival} [95 %, bootstrap]`];
  const worlds = across.worlds.join(", ");
  $("across").append(
    html("p", { class: "quiet note" }, `Figures ${worlds}. A seed’s final reward is 0 where it is that of random, 1 where it is that of greedy; the interquartile mean is over worlds and seeds, its bootstrap draws each world’s seeds by themselves.`),
    scrolled(tableOf("finals", heads, cells)),
  );
}

/** A share with its interval; where all pairs of runs in a world agree there is none but their count. */
function beaten([value, low, high], [won, pairs]) {
  if (low === high) return `${percent(value)}, ${won} of ${pairs} pairs`;
  return `${percent(value)} [${percent(low)}, ${percent(high)}]`;
}
