// What stands beside and below the curves of a figure: the legend with the final numbers, the
// probability of improvement for each pair, every run, and the commands.

/** The finals as a table whose first column switches curves on and off. */
function legend(figure, hidden, again) {
  const several = figure.worlds.length > 1;
  const heads = ["", ...(several ? ["N"] : []), "mean ± 95 % (t)", "published", "IQM [95 %, bootstrap]"];
  const [first] = figure.worlds;
  const order = [...first.series].sort((a, b) => (b.mean?.[0] ?? -9) - (a.mean?.[0] ?? -9));
  const rows = order.flatMap(({ algorithm }) =>
    figure.worlds.map((world, place) => {
      const each = world.series.find((series) => series.algorithm === algorithm);
      const button = () => toggle(algorithm, hidden, again);
      const lead = place > 0 ? [] : [html("th", { rowspan: figure.worlds.length, scope: "row" }, button())];
      const cells = [
        ...(several ? [String(world.N)] : []),
        plusMinus(each.mean),
        fixed(each.published, several ? 3 : 2),
        each.iqm ? between(each.iqm) : "–",
      ];
      return html("tr", {}, ...lead, ...cells.map((text) => html("td", { class: "number" }, text)));
    }),
  );
  for (const name of Object.keys(first.references)) {
    figure.worlds.forEach((world, place) => {
      const button = () => toggle(name, hidden, again);
      const lead = place > 0 ? [] : [html("th", { rowspan: figure.worlds.length, scope: "row" }, button())];
      const level = world.references[name];
      const cells = [...(several ? [String(world.N)] : []), level === undefined ? "–" : fixed(level, 3), "", ""];
      rows.push(html("tr", {}, ...lead, ...cells.map((text) => html("td", { class: "number" }, text))));
    });
  }
  return scrolled(tableOf("finals", heads, rows));
}

function toggle(name, hidden, again) {
  const button = html("button", { type: "button", class: "toggle", "aria-pressed": "true" }, swatch(name), name);
  button.addEventListener("click", () => {
    if (!hidden.delete(name)) hidden.add(name);
    button.setAttribute("aria-pressed", String(!hidden.has(name)));
    again();
  });
  return button;
}

/** How often a run of the row's algorithm beats one of the column's. */
function improvements(figure) {
  const grids = figure.worlds
    .filter((world) => world.series.some((each) => each.mean))
    .map((world) => {
      const names = world.series.map((each) => each.algorithm);
      const seeds = world.series.map((each) => each.seeds);
      const rows = world.improvement.map((row, i) =>
        html("tr", {}, html("th", { scope: "row" }, names[i]), ...row.map((each, j) => chance(each, seeds[i] * seeds[j]))),
      );
      const title = figure.worlds.length > 1 ? `N = ${world.N}` : "";
      const grid = tableOf("grid", ["", ...names], rows);
      if (title) grid.prepend(html("caption", {}, title));
      return scrolled(grid);
    });
  const about = "In percent, ties half: how often a run of the row’s algorithm ends above a run of the column’s. Below it the 95 % interval, or the count where all pairs of runs agree.";
  return folded("Probability of improvement, for each pair", "", html("p", { class: "quiet" }, about), html("div", { class: "grids" }, ...grids));
}

function chance(triple, pairs) {
  if (!triple) return html("td", { class: "none" }, "");
  const [value, low, high] = triple;
  const color = value >= 0.5 ? "var(--second)" : "var(--c-i)";
  const strength = Math.round(100 * Math.abs(value - 0.5));
  const style = `background:color-mix(in srgb, ${color} ${strength}%, transparent)`;
  const interval = low === high ? `${value * pairs} of ${pairs} pairs` : `${Math.round(100 * low)}–${Math.round(100 * high)}`;
  const told = low === null ? "" : interval;
  return html("td", { class: "number", style }, String(Math.round(100 * value)), html("small", {}, told));
}

function runsTable(title, runs) {
  const heads = ["run", "seed", "steps", "reward ± 95 %", "minutes", "world", "preset", "made with", "the command"];
  const rows = runs.map((run) => {
    const minutes = run.seconds === null ? "–" : fixed(run.seconds / 60, 1);
    const reward = plusMinus(run.ci95 === null ? [run.reward] : [run.reward, run.reward - run.ci95, run.reward + run.ci95]);
    const numbers = [run.seed, run.steps.toLocaleString("en"), reward, minutes];
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, run.run),
      ...numbers.map((text) => html("td", { class: "number" }, String(text))),
      html("td", {}, `${worldOf(run)}, N = ${run.N}`),
      html("td", {}, run.settings ? `${run.preset}, ${run.settings}` : `${run.preset}, no setting changed`),
      html("td", { class: "quiet" }, `${run.versions}; ${run.machine}`),
      html("td", {}, html("code", {}, run.command ?? "not a run of `selectmdp reproduce`")),
    );
  });
  const about = "The interval of a run is over its evaluation’s episodes.";
  const box = folded(`${title} (${runs.length})`, "", html("p", { class: "quiet" }, about), bitForBit());
  if (rows.length > 0) box.append(scrolled(tableOf("runs", heads, rows)));
  return box;
}

function commands(figure) {
  const one = figure.runs.find((run) => run.command !== null);
  const lines = [html("p", {}, "The figure:"), command(figure.command)];
  if (one) lines.push(html("p", {}, "One of its runs, by itself:"), command(one.command), bitForBit());
  return folded("Do it again", "printed", ...lines);
}

/** What a run alone needs to round as it did beside others. */
function bitForBit() {
  const flag = html("code", {}, data.commands.one_thread);
  const told = " in front of its command a run alone is the same, bit for bit, on the same processor.";
  return html("p", { class: "quiet" }, "Runs made side by side have one thread each, and threads change rounding: with ", flag, told);
}

function command(text) {
  return html("pre", { tabindex: "0" }, html("code", {}, text));
}

function folded(title, name, ...children) {
  return html("details", { class: name }, html("summary", {}, title), ...children);
}

function tableOf(name, heads, rows) {
  const head = html("tr", {}, ...heads.map((text) => html("th", { scope: "col" }, text)));
  return html("table", { class: name }, html("thead", {}, head), html("tbody", {}, ...rows));
}
