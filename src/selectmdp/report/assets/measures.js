// Generalization as heat maps and over N; cost and parameters over N and K.

function showGeneralization({ matrices, sweep, runs }) {
  const section = $("generalization");
  const pair = section.querySelector(".pair");
  pair.append(html("div", { class: "heat" }, ...matrices.map(heatMap)));
  const hidden = new Set();
  const lines = sweep.map(({ network, trained, points }) => ({ name: `${network}, trained at ${trained}`, points }));
  if (lines.some(({ points }) => points.length > 0)) {
    const holder = html("div", {});
    const again = () => redraw();
    pair.append(html("div", { class: "charts" }, holder, sweepLegend(lines, hidden, again)));
    const redraw = chart(holder, () => {
      const shown = lines.filter(({ name }) => !hidden.has(name));
      return powerChart("reward over the N that is played", shown, {
        x: { label: "N played", log: true },
        y: { label: "reward of a step (area)", log: false },
        head: (stop) => `N = ${stop}`,
      });
    });
  }
  if (runs.length > 0) section.append(runsTable("Every run that is in no figure", runs));
  section.append(folded("Do it again", "printed", command(data.commands.generalization)));
}

/** Rows where it was trained, columns where it plays. */
function heatMap({ title, cells }) {
  const sizes = [...new Set(cells.map((cell) => cell.trained))];
  const rows = sizes.map((trained) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, `trained at ${trained}`),
      ...cells.filter((cell) => cell.trained === trained).map(heatCell),
    ),
  );
  const table = tableOf("heat-map", ["", ...sizes.map((size) => `plays ${size}`)], rows);
  table.prepend(html("caption", {}, title));
  return table;
}

function heatCell({ reward, share, unlearned, published, trained, played }) {
  if (!reward) return html("td", { class: "none" }, "not played");
  const none = unlearned ? `trained at ${played}: as random` : "share not known";
  if (!share) return html("td", { class: "number" }, plusMinus(reward), html("small", {}, none));
  const strength = Math.round(Math.min(Math.max(share[0], 0), 1.1) * 45);
  const style = `background:color-mix(in srgb, var(--second) ${strength}%, transparent)`;
  const own = trained === played;
  const lines = [html("b", {}, percent(share[0]))];
  if (!own && share[1] !== null) lines.push(html("small", {}, `${percent(share[1])} to ${percent(share[2])}`));
  if (published !== null) lines.push(html("small", {}, `published ${percent(published)}`));
  lines.push(html("small", {}, plusMinus(reward)));
  return html("td", { class: "number", style }, ...lines);
}

function sweepLegend(lines, hidden, again) {
  const sizes = [...new Set(lines.flatMap(({ points }) => points.map(([size]) => size)))];
  const rows = lines.map(({ name, points }) => {
    const found = new Map(points.map(([size, ...triple]) => [size, triple]));
    const cells = sizes.map((size) => html("td", { class: "number" }, found.has(size) ? fixed(found.get(size)[0], 3) : "–"));
    return html("tr", {}, html("th", { scope: "row" }, toggle(name, hidden, again)), ...cells);
  });
  return scrolled(tableOf("finals", ["", ...sizes.map((size) => `N = ${size}`)], rows));
}

function showCost(lines) {
  const section = $("cost");
  for (const { varies, fixed: other, series, published } of lines) {
    const figure = html("figure", {}, html("figcaption", {}, `over ${varies}, ${other}`));
    section.querySelector(".two").append(figure);
    if (series.length === 0) {
      figure.append(html("p", { class: "quiet" }, "Not measured."));
      continue;
    }
    const holder = figure.appendChild(html("div", {}));
    const named = series.map(({ preset, points, fit }) => ({ name: preset, points, fit }));
    chart(holder, () =>
      powerChart(`milliseconds of a step over ${varies}`, named, {
        x: { label: varies, log: true, ticks: [...new Set(named.flatMap(({ points }) => points.map(([x]) => x)))] },
        y: { label: "milliseconds a step", log: true },
        head: (stop) => `${varies} = ${stop}`,
        text: ([value]) => `${Number(value.toPrecision(3))} ms`,
        extra: published,
      }),
    );
    const laws = named.filter(({ fit }) => fit).map(({ name, fit }) => {
      const law = html("span", {}, swatch(name), `${name} preset: grows as ${varies}`);
      law.append(html("sup", {}, fixed(fit[1], 2)));
      return law;
    });
    if (published) laws.push(html("span", {}, hollow("isq-i"), "published: 1.16 million steps a day"));
    figure.append(html("p", { class: "laws" }, ...laws));
  }
  section.append(folded("Do it again", "printed", command(data.commands.cost)));
}

function showParameters(lines) {
  for (const { varies, fixed: other, series } of lines) {
    const holder = html("div", {});
    const figure = html("figure", {}, html("figcaption", {}, `over ${varies}, ${other}`), holder);
    document.querySelector("#parameters .two").append(figure);
    const named = series.map(({ algorithm, points }) => ({ name: algorithm, points }));
    const sizes = named[0].points.map(([x]) => x);
    chart(holder, () =>
      powerChart(`parameters over ${varies}`, named, {
        x: { label: varies, log: true, ticks: sizes },
        y: { label: "numbers to learn", log: true },
        head: (stop) => `${varies} = ${stop}`,
        text: ([value]) => value.toLocaleString("en"),
      }),
    );
    const laws = series.map(({ algorithm, growth }) => html("span", {}, swatch(algorithm), `${algorithm}: ${growth}`));
    figure.append(html("p", { class: "laws" }, ...laws));
    const rows = series.map(({ algorithm, points }) =>
      html("tr", {}, html("th", { scope: "row" }, algorithm), ...points.map(([, count]) => html("td", { class: "number" }, short(Number(count.toPrecision(3)))))),
    );
    figure.append(scrolled(tableOf("finals", [`${varies} =`, ...sizes], rows)));
  }
}

/** Lines over sizes, with their power laws where there are some; `extra` is a published point. */
function powerChart(name, lines, { x, y, head, text = plusMinus, extra = null }) {
  const points = lines.flatMap((line) => line.points);
  const heights = points.flatMap((point) => point.slice(1)).filter((value) => value !== null);
  const sizes = points.map(([size]) => size);
  return {
    name,
    x: spanned(sizes, x),
    y: spanned(extra ? [...heights, extra[1]] : heights, y),
    stops: [...new Set(sizes)].sort((a, b) => a - b),
    draw: (plot) => [
      ...lines.flatMap((line) => (line.fit ? [law(plot, line)] : [])),
      ...lines.map((line) => joined(plot, line.name, line.points)),
      ...(extra ? [mark("isq-i", plot.px(extra[0]), plot.py(extra[1]), true)] : []),
    ],
    read: (stop) => {
      const told = reading(head(stop), lines, ({ points }) => points.find(([size]) => size === stop));
      for (const row of told.rows) row.text = text(row.triple);
      return told;
    },
  };
}

function law(plot, { name, points, fit: [factor, exponent] }) {
  const at = (size) => plot.py(factor * size ** exponent);
  const [from, to] = [points[0][0], points.at(-1)[0]];
  const style = `stroke:${look(name).color}`;
  return svg("line", { x1: plot.px(from), x2: plot.px(to), y1: at(from), y2: at(to), style, class: "published" });
}

function hollow(name) {
  return svg("svg", { width: 26, height: 14, class: "swatch", "aria-hidden": "true" }, mark(name, 13, 7, true));
}
