// The claims: a verdict each, our number beside the published one, and on demand what it rests on.

const VERDICTS = {
  holds: ["holds", "M2 7l3.5 3.5L12 3.5"],
  "holds so far": ["holds", "M2 7l3.5 3.5L12 3.5"],
  "holds in part": ["part", "M2 7h10"],
  "does not hold": ["not", "M3 3l8 8M11 3l-8 8"],
  undecided: ["open", "M2 5.5q2.5-3 5 0t5 0M2 10q2.5-3 5 0t5 0"],
  "not judged": ["open", "M5 4.6a2.2 2.2 0 1 1 2.9 2.2q-.9.4-.9 1.4M7 11v.4"],
};

const LACKING = {
  "too few runs": "Not judged: too few runs; a comparison needs three seeds of each side.",
  "too few sizes measured": "Not judged: too few sizes measured; a cost needs three.",
  "not measured": "Nothing of it was measured.",
};

function verdict(name) {
  const [kind, path] = VERDICTS[name];
  const icon = svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, svg("path", { d: path }));
  return html("span", { class: `verdict ${kind}` }, icon, name);
}

/** How many of each, as one bar. */
function verdictStrip(claims) {
  const parts = Object.keys(VERDICTS).map((name) => [name, claims.filter((c) => c.verdict === name).length]);
  const shown = parts.filter(([, count]) => count > 0);
  return html(
    "p",
    { class: "strip" },
    ...shown.map(([name, count]) => {
      const part = verdict(name);
      part.style.flexGrow = count;
      part.prepend(html("b", {}, String(count)));
      return part;
    }),
  );
}

function showClaims(claims) {
  $("verdicts").append(verdictStrip(claims));
  const body = document.querySelector("#claims tbody");
  for (const claim of claims) {
    const row = html(
      "tr",
      { class: "claim", id: `claim-${claim.name}` },
      html("td", {}, verdict(claim.verdict)),
      html("td", {}, claim.text),
      html("td", { "data-label": "Ours", class: "number" }, claim.ours.replaceAll("-0.", "−0.")),
      html("td", { "data-label": "Published", class: "number" }, claim.published),
    );
    body.append(row, html("tr", { class: "why" }, html("td", {}), html("td", { colspan: 3 }, why(claim))));
  }
}

/** The rule in words, and every comparison with its interval drawn. */
function why(claim) {
  const box = html("details", { class: "printed" }, html("summary", {}, "How it is judged"));
  box.append(html("p", {}, `It holds where ${claim.rule}.`));
  const lacking = claim.lacking.map((why) => html("p", { class: "quiet" }, LACKING[why] ?? `Not judged: ${why}.`));
  if (claim.evidence.length === 0) {
    box.append(...lacking);
    return box;
  }
  const chances = claim.evidence.some((each) => each.probability !== null);
  const draw = forest(claim.evidence);
  const known = claim.evidence.some((each) => each.published !== null);
  const heads = ["", "Comparison", "Ours", "", ...(known ? ["Published"] : []), ...(chances ? ["Better in"] : [])];
  const rows = claim.evidence.map((each) =>
    html(
      "tr",
      {},
      html("td", {}, verdict(each.verdict)),
      html("td", {}, each.what),
      html("td", { class: "number" }, evidenceNumber(each)),
      html("td", {}, draw(each)),
      ...(known ? [html("td", { class: "number" }, each.published ?? "–")] : []),
      ...(chances ? [html("td", { class: "number" }, percent(each.probability))] : []),
    ),
  );
  const head = html("tr", {}, ...heads.map((name) => html("th", {}, name)));
  box.append(scrolled(html("table", { class: "evidence" }, html("thead", {}, head), html("tbody", {}, ...rows))));
  box.append(...lacking);
  if (chances) {
    box.append(html("p", { class: "quiet" }, "“Better in”: how often a run of the first beats a run of the second."));
  }
  return box;
}

function evidenceNumber(each) {
  if (Math.abs(each.value) >= 1000) return Math.round(each.value).toLocaleString("en");
  return `${each.kind} ${between([each.value, each.low, each.high])}`.trim();
}

/** Gives a function that draws an interval on the scale of them all, over where it is as claimed. */
function forest(evidence) {
  const [width, height] = [170, 18];
  const known = evidence.flatMap((each) => [each.low, each.high, each.least, each.most]);
  const numbers = known.filter((number) => number !== null);
  const x = scale(spanned(numbers, { zero: false }), 6, width - 6);
  return (each) => {
    const from = each.least === null ? 0 : x(each.least);
    const to = each.most === null ? width : x(each.most);
    const edges = [each.least, each.most].filter((edge) => edge !== null);
    return svg(
      "svg",
      { width, height, class: `forest ${VERDICTS[each.verdict][0]}`, "aria-hidden": "true" },
      svg("rect", { x: from, width: Math.max(to - from, 0), y: 0, height, class: "claimed" }),
      ...edges.map((edge) => svg("line", { x1: x(edge), x2: x(edge), y1: 0, y2: height, class: "edge" })),
      ...dotted(x, each),
    );
  };
}

function dotted(x, { value, low, high }) {
  const range = svg("line", { x1: x(low), x2: x(high), y1: 9, y2: 9, class: "range" });
  return [range, svg("circle", { cx: x(value), cy: 9, r: 4 })];
}

function percent(share) {
  return share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`;
}

/** A table in a box that scrolls by itself, so that the page does not. */
function scrolled(table) {
  return html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, table);
}
