// The paper’s own preset: curves as far as its runs got, beside the published ends.

function showPaper(paper) {
  if (paper === null) return;
  const hidden = new Set();
  const time = { minutes: false };
  const again = () => redraw();
  const title = html("h2", {}, "The paper’s own preset", html("span", { class: "quiet" }, ` ${paper.title}`));
  const holder = html("div", {});
  const section = html(
    "section",
    { class: "card figure", id: "paper" },
    html("div", { class: "head" }, title, timeSwitch(time, again)),
    ...paperNote(paper),
    html("div", { class: "pair" }, html("div", { class: "charts" }, holder), scrolled(progressTable(paper, hidden, again))),
    folded(
      "Do it again",
      "printed",
      html("p", {}, "The runs, which go on where they stopped:"),
      command(paper.command),
      html("p", {}, "How far those are that are under way:"),
      command(paper.progress),
    ),
  );
  $("figures").after(section); // in its place first: the chart asks how wide it is
  const redraw = chart(holder, () => curvesOf(paper, paper.world, hidden, time));
}

function paperNote({ unit, sizes, published_steps: steps }) {
  const told = [
    `Reward of a step (${unit}) where ISQ learns as the paper has it, one seed each. Hollow and dashed: published.`,
    `${worldOf(sizes)} · published: ${steps.toLocaleString("en")} steps · a run that is not at its end has no final reward`,
  ];
  return told.map((text) => html("p", { class: "quiet note" }, text));
}

/** How far each run is, where it is there, and where it ended. */
function progressTable({ world, published_steps: wanted }, hidden, again) {
  const rows = world.series.map(({ algorithm, steps, curve, mean, published, hours }) => {
    const far = mean ? "" : ` (${percent(steps / wanted)})`;
    const begun = curve.length > 0 || mean;
    const cells = [
      plusMinus(mean),
      curve.length > 0 ? fixed(curve.at(-1)[2], 3) : "–",
      fixed(published, 2),
      begun ? steps.toLocaleString("en") + far : "not begun",
      begun ? fixed(hours, 1) : "–",
    ];
    const lead = html("th", { scope: "row" }, toggle(algorithm, hidden, again));
    return html("tr", {}, lead, ...cells.map((text) => html("td", { class: "number" }, text)));
  });
  return tableOf("finals", ["", "final", "curve’s end", "published", "steps", "hours"], rows);
}
