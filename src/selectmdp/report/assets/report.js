// The report from top to bottom.

const NAMES = { claims: "Claims", generalization: "Generalization", cost: "Cost", parameters: "Parameters" };

showHead();
showProblems();
showClaims(data.claims);
showAcross(data.across);
data.figures.forEach(showFigure);
showPaper(data.paper);
showGeneralization(data.generalization);
showCost(data.cost);
showParameters(data.parameters);
$("again").append(command(data.commands.all));
openForPrint();

/** What all runs together are, and where to find what. */
function showHead() {
  const { facts } = data;
  const several = (list, unit) => (list.length > 0 ? `${unit} ${list.join(", ")}` : "");
  const told = [
    data.folder,
    `${facts.runs} runs, ${facts.hours.toFixed(1)} hours of training`,
    facts.steps.length > 0 ? `a run has ${fromTo(facts.steps)} steps (published: ${fromTo(facts.published_steps)})` : "",
    several(facts.preset, "preset"),
    several(facts.selectmdp, "selectmdp"),
    several(facts.jax, "JAX"),
    several(facts.machine, "on"),
  ];
  $("title").textContent = document.title;
  $("facts").textContent = told.filter((fact) => fact !== "").join(" · ");
  const figures = data.figures.map(({ name }) => [`figure-${name}`, name]);
  const { claims, ...others } = NAMES;
  const paper = data.paper === null ? [] : [["paper", "Paper’s preset"]];
  const links = [["claims", claims], ...figures, ...paper, ...Object.entries(others)];
  $("contents").append(...links.map(([id, name]) => html("a", { href: `#${id}` }, name)));
}

function fromTo(numbers) {
  const ends = [...new Set([numbers[0], numbers.at(-1)])];
  return ends.map((number) => number.toLocaleString("en")).join(" to ");
}

function showProblems() {
  $("problems").hidden = data.problems.length === 0;
  const told = data.problems.map((problem) => html("li", {}, problem));
  $("problems").querySelector("ul").append(...told);
}

/** On paper nothing can be opened: what is short is open, every run stays a line. */
function openForPrint() {
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details.printed:not([open])")];
    for (const box of opened) box.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const box of opened) box.open = false;
  });
}
