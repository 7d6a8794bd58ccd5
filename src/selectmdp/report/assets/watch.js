// The replay: one place in the episode, and everything on the page shows that place.

const PHASES = data.num_select;
const LAST = data.steps * PHASES - 1;
const PICKS_PER_SECOND = 2.5;

let at = 0; // K · step + pick
let timer = null;

writeHead();
const cards = data.players.map(makeCard);
const moveTotals = totalsPlot($("totals"), data.players, data.steps);

/** Show this place of the episode. */
function show(place) {
  at = Math.min(Math.max(place, 0), LAST);
  const [step, phase] = [Math.floor(at / PHASES), at % PHASES];
  cards.forEach((card) => card(step, phase));
  moveTotals(step + (phase === PHASES - 1));
  $("seek").value = at;
  $("seek").setAttribute("aria-valuetext", `step ${step + 1}, pick ${phase + 1}`);
  $("now").textContent = sentence(step, phase);
}

/** The place in words. */
function sentence(step, phase) {
  const [{ rewards, totals, picks, values }] = data.players;
  const where = `Step ${step + 1} of ${data.steps}, pick ${phase + 1} of ${PHASES}`;
  if (step >= rewards.length) return `${where}: ended. Reward ${brief(totals.at(-1))}.`;
  const [item, command] = picks[step][phase];
  const worth = values?.[step][phase][item] ?? null; // of item −1 there is none
  const picked = item < 0 ? "nothing is left to pick" : `item ${item}, ${data.commands[command]}`;
  const value = worth === null ? "" : `, worth ${brief(worth)}`;
  const before = totals[step - 1] ?? 0;
  const reward =
    phase < PHASES - 1
      ? `Reward so far ${brief(before)}.`
      : `Reward ${brief(rewards[step])}, so far ${brief(totals[step])}.`;
  return `${where}: ${picked}${value}. ${reward}`;
}

/** Play, or pause where it plays; at the end start again. */
function play() {
  if (timer !== null) return pause();
  if (at === LAST) show(0);
  $("now").setAttribute("aria-live", "off"); // it is read out when it rests, not at every pick
  face("Pause");
  goOn();
}

function goOn() {
  const rest = at % PHASES === PHASES - 1 ? 2 : 1; // time to read what a step earned
  const wait = (1000 * rest) / (PICKS_PER_SECOND * Number($("speed").value));
  timer = setTimeout(() => {
    if (at + 1 === LAST) pause();
    else goOn();
    show(at + 1);
  }, wait);
}

function pause() {
  clearTimeout(timer);
  timer = null;
  $("now").setAttribute("aria-live", "polite");
  face("Play");
}

function face(name) {
  $("play").setAttribute("aria-label", name);
  $("play").classList.toggle("playing", name === "Pause");
}

/** To another place by hand, which ends the play. */
function go(place) {
  if (timer !== null) pause();
  show(place);
}

const stepStart = (by) => PHASES * (Math.floor(at / PHASES) + by);
const BUTTONS = {
  "step-back": () => go(stepStart(at % PHASES === 0 ? -1 : 0)),
  back: () => go(at - 1),
  play,
  forward: () => go(at + 1),
  "step-forward": () => go(stepStart(1)),
};
const KEYS = {
  " ": play,
  ArrowLeft: BUTTONS.back,
  ArrowRight: BUTTONS.forward,
  "Shift ArrowLeft": BUTTONS["step-back"],
  "Shift ArrowRight": BUTTONS["step-forward"],
  Home: () => go(0),
  End: () => go(LAST),
};

for (const [id, act] of Object.entries(BUTTONS)) {
  $(id).addEventListener("click", (event) => {
    act();
    if (event.detail > 0) $(id).blur(); // clicked, not typed: space is to play then
  });
}
$("seek").max = LAST;
$("seek").addEventListener("input", () => go(Number($("seek").value)));
document.addEventListener("keydown", (event) => {
  const act = KEYS[(event.shiftKey ? "Shift " : "") + event.key];
  const theirs = event.key === " " ? "button, select" : "select";
  if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest(theirs)) return; // the browser knows what to do
  event.preventDefault();
  act();
});
document.querySelector(".chart").addEventListener("click", (event) => {
  const { left, width } = event.currentTarget.querySelector("svg").getBoundingClientRect();
  const step = Math.floor(((event.clientX - left) / width) * data.steps);
  go(PHASES * (step + 1) - 1);
});
show(0);
