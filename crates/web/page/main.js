// The page: what the form says is run, and all runs are shown side by side at the same time.

import { ask, stop, Refusal } from "weft/engine";
import { finish_lines, flow_lines, queue_legend, queue_lines, uplink_map } from "weft/charts";
import { fabric_picture } from "weft/fabric";
import { choices_of, show_form } from "weft/form";
import { bytes, count, element, theme, time as in_words } from "weft/look";
import { finished, ready, uplinks } from "weft/run";
import { EXAMPLES } from "weft/examples";
import { FIRST, from_hash, interval_for, title, to_hash, toml } from "weft/scenario";
import { table } from "weft/table";

const $ = (id) => document.getElementById(id);
/** What is shown: finished runs, their drawings, the time. */
const shown = { runs: [], drawings: [], span: 1, time: 0, playing: false, look: theme(), bounds: [] };
let scenario = structuredClone(FIRST);
/** What the form said before a file was written by hand. */
let by_form = scenario;
let choices = null;
/** How often the file of the form says to look at ports. */
let interval = "1us";
/** Rises with each start, so that what an earlier one still says is not shown. */
let turn = 0;
/** For tests, and for whoever opens the console: the file and the rows of what is shown. */
const results = (window.weft = { state: "starting", toml: "", runs: [], ask });

const MOST_RUNS = 6;
const COARSER = 10;

async function simulate() {
  const mine = ++turn;
  stop();
  busy(true);
  say("");
  try {
    history.replaceState(null, "", `#${await to_hash(scenario)}`);
    const { file, found, warnings } = await results_of(mine);
    if (mine !== turn) return;
    $("file").value = results.toml = file;
    results.runs = found.map(({ label, key, text = null, refusal = null }) => ({
      label,
      key,
      row: text,
      refusal,
    }));
    show(found, warnings);
    const took = found.filter(({ ms }) => ms).map(({ ms }) => ms / 1e3);
    note(
      took.length
        ? `${in_runs(took.length)} in ${in_words(Math.max(...took))} each at most, in this browser`
        : "no run finished",
    );
    results.state = "done";
  } catch (error) {
    if (mine !== turn) return;
    refuse(error.message);
    results.state = "refused";
    if (!(error instanceof Refusal)) throw error;
  }
  busy(false);
}

/** The file and what comes of its runs. What takes far longer than the bound is looked at less often. */
async function results_of(mine) {
  for (let factor = 1; ; factor *= COARSER) {
    const { file, listed, least, warnings } = await plan(factor);
    if (mine === turn) note(`${in_runs(listed.length)}, the first of ${count(least.packet_hops)} packet-hops at least …`);
    const found = await Promise.all(told_apart(listed).map((one) => result(one)));
    const too_many = found.some(({ wrong }) => wrong === "probe.interval");
    if (!too_many || scenario.text !== undefined || mine !== turn)
      return { file, found, warnings };
  }
}

/** The file, its runs, and what they take at least. A form's file says how often to look at ports. */
async function plan(factor = 1) {
  let file = toml(scenario);
  let { answer } = await ask({ ask: "runs", text: file });
  const most = answer.runs.length;
  if (most > MOST_RUNS)
    throw new Refusal({ line: `${most} runs are more than the ${MOST_RUNS} that are shown; sweep less` });
  const least = (await ask({ ask: "least", ...answer.runs[0] })).answer;
  if (scenario.text === undefined) {
    interval = interval_for(least.bound_s * factor);
    file = toml(scenario, interval);
    ({ answer } = await ask({ ask: "runs", text: file }));
  }
  return { file, listed: answer.runs, least, warnings: answer.warnings };
}

/** Runs of one label have their seeds in it. */
function told_apart(listed) {
  const several = ({ label }) => listed.filter((one) => one.label === label).length > 1;
  return listed.map((one) => (several(one) ? { ...one, label: `${one.label}, seed ${one.seed}` } : one));
}

async function result(one) {
  try {
    return ready(one, await ask({ ask: "run", ...one }));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { ...one, refusal: error.message, wrong: error.key };
  }
}

function show(runs, warnings) {
  const there = runs.filter(({ row }) => row);
  const bounds = [...new Set(there.map(({ row }) => row.bound_s))];
  Object.assign(shown, { runs: there, bounds, time: 0 });
  shown.span = span();
  const longest = there.reduce((most, run) => Math.max(most, run.longest), 0);
  Object.assign(shown, { longest, drawings: [] });
  $("table").replaceChildren(table(runs, (run) => (run.row ? swatch(there.indexOf(run)) : null)));
  $("bound").textContent = in_bounds(bounds);
  const unseen = there.some(({ queues, use }) => !some(queues) || !some(use)) ? [UNSEEN] : [];
  const lines = new Set([...warnings, ...there.flatMap((run) => run.warnings), ...unseen]);
  $("warnings").replaceChildren(...[...lines].map((line) => element("li", { textContent: line })));
  $("key").hidden = !there.some(({ queues, use }) => some(queues) || some(use));
  const compared = finish_lines(there, bounds.length === 1 ? bounds[0] : null);
  shown.drawings.push(compared);
  $("compared").replaceChildren(legend(there.map(({ label }) => label)), compared.canvas);
  $("panels").replaceChildren(...there.map(panel));
  const columns = there.length > 4 ? Math.ceil(there.length / 2) : there.length;
  $("panels").style.setProperty("--columns", columns);
  $("longest").textContent = longest ? bytes(longest) : "none";
  $("results").hidden = false;
  $("rows").disabled = !there.length;
  $("drawn").hidden = !there.length;
  if (!there.length) return play(false);
  draw();
  if (!matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
  else move(shown.span);
}

const in_runs = (number) => (number === 1 ? "1 run" : `${count(number)} runs`);

/** What no run can be faster than. */
function in_bounds(bounds) {
  if (!bounds.length) return "";
  const [least, most] = [Math.min(...bounds), Math.max(...bounds)].map(in_words);
  return bounds.length === 1
    ? `The bound is ${least}: no scheme can be faster on this fabric, with these failures.`
    : `Each run has a bound of its own, ${least} to ${most}: no scheme can be faster at what it does.`;
}

/** How long the time axis is: all runs, or as much as tells the fast ones apart. */
function span() {
  const bound = Math.max(...shown.bounds);
  const whole = shown.runs.reduce((most, { row }) => Math.max(most, row.cct_s), bound) * 1.02;
  const factor = Number($("zoom").value);
  return factor ? Math.min(whole, factor * bound) : whole;
}

const some = (table) => Object.keys(table).length > 0;

/** What to add to a file so that all is drawn. */
const UNSEEN =
  "probe: queues, or what links send, were not sampled and are not drawn; " +
  'write interval = "1us", ports = ["* -> *"] and sent = ["* -> *"] under [probe]';

/** Everything of one run. */
function panel(run, number) {
  const fabric = fabric_picture(run);
  const heading = (words) => element("h3", { textContent: words });
  // Each with its heading; what was not sampled, or is not there, would be an empty frame.
  const charts = [[heading("Flows, from start to finish; those later than 95 % in orange"), flow_lines(run)]];
  if (some(run.queues)) {
    const headed = element("div", { className: "headed" }, heading("Longest queue"), legend(queue_legend));
    charts.unshift([headed, queue_lines(run, shown.longest)]);
  }
  if (uplinks(run).some((port) => run.use[port]))
    charts.unshift([heading("Uplinks, from idle to busy"), uplink_map(run)]);
  const share = element("progress", { max: 1, value: 0 });
  share.ariaLabel = `${run.label}: flows finished`;
  for (const { canvas } of [fabric, ...charts.map(([, chart]) => chart)])
    canvas.ariaLabel = `${run.label}: ${canvas.ariaLabel}`;
  const state = element("span", { className: "state" });
  shown.drawings.push(...charts.map(([, chart]) => chart), {
    draw(look, time) {
      fabric.draw(look, time, shown.longest);
      const part = finished(run, time);
      share.value = part;
      const done = time >= run.row.cct_s;
      state.textContent = done
        ? `done at ${in_words(run.row.cct_s)}`
        : `${Math.floor(part * 100)} % of flows`;
    },
    forget() {},
  });
  return element(
    "article",
    {},
    element("header", {}, element("h2", {}, swatch(number), run.label), state),
    share,
    fabric.canvas,
    fabric.shown,
    ...charts.flatMap(([head, { canvas }]) => [head, canvas]),
  );
}

/** A piece of the line that stands for something. */
function swatch(number) {
  const [colour, dash] = [shown.look.line(number), shown.look.dash(number)];
  const mark = element("span", { className: "swatch", "data-number": number });
  mark.innerHTML = `<svg width="24" height="8" aria-hidden="true"><line x1="0" y1="4" x2="24" y2="4"
    stroke="${colour}" stroke-width="3" stroke-dasharray="${dash.join(" ")}"/></svg>`;
  return mark;
}

function legend(names) {
  const items = names.map((name, number) => element("span", {}, swatch(number), name));
  return element("div", { className: "legend" }, ...items);
}

/** Paints everything at the present time. */
function draw() {
  for (const one of shown.drawings) one.draw(shown.look, shown.time, shown.span);
  $("time").value = shown.time / shown.span;
  $("now").textContent = $("time").ariaValueText = in_words(shown.time);
}

function move(time) {
  shown.time = Math.max(0, Math.min(shown.span, time));
  draw();
}

/** Seconds in which the whole of it is played, at the usual speed. */
const WHOLE = 10;
let last = 0;

function play(on) {
  shown.playing = on;
  $("play").textContent = on ? "❚❚ pause" : "▶ play";
  if (!on) return;
  if (shown.time >= shown.span) shown.time = 0;
  last = performance.now();
  requestAnimationFrame(step);
}

function step(now) {
  if (!shown.playing) return;
  const passed = (Math.max(0, now - last) / 1e3 / WHOLE) * Number($("speed").value);
  last = now;
  move(shown.time + passed * shown.span);
  if (shown.time >= shown.span) return play(false);
  requestAnimationFrame(step);
}

/** Counts the seconds of what runs, where it takes some; not for readers of screens, who are told of its end. */
let clock = null;
function count_seconds(on) {
  clearInterval(clock);
  $("elapsed").textContent = "";
  if (!on) return;
  const began = performance.now();
  const tell = () => {
    const seconds = Math.round((performance.now() - began) / 1e3);
    $("elapsed").textContent =
      `${in_words(seconds)} so far; a browser does some million packet-hops a second`;
  };
  clock = setInterval(tell, 1e3);
}

function busy(on) {
  count_seconds(on);
  results.state = on ? "running" : results.state;
  const [now, next] = on ? [$("run"), $("stop")] : [$("stop"), $("run")];
  const focused = document.activeElement === now;
  $("run").disabled = on;
  $("stop").hidden = !on;
  // What is hidden or disabled loses the focus.
  if (focused) next.focus();
  document.body.classList.toggle("busy", on);
}

const say = (line) => Object.assign($("error"), { textContent: line, hidden: !line });
/** Why nothing is run. */
function refuse(line) {
  say(line);
  note($("results").hidden ? "" : "What is shown is of the run before.");
}
const note = (line) => ($("note").textContent = line);

/** The form or, if the file was written by hand, the file. */
function show_scenario() {
  const by_hand = scenario.text !== undefined;
  $("fields").hidden = by_hand;
  $("examples").hidden = by_hand;
  $("by-form").hidden = !by_hand;
  $("file").value = toml(scenario, interval);
  $("file-box").open ||= by_hand;
  if (!by_hand) show_form($("fields"), scenario, choices, () => ($("file").value = toml(scenario, interval)));
}

function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1e4);
}

async function copy_link() {
  const link = `${location.href.split("#")[0]}#${await to_hash(scenario)}`;
  history.replaceState(null, "", link);
  try {
    await navigator.clipboard.writeText(link);
    note("The link is copied: it holds the whole scenario.");
  } catch {
    note("The link is in the address bar: it holds the whole scenario.");
  }
}

/** All rows as `weft run --json` prints them, but for times of the machine. */
const rows = () =>
  `[\n${results.runs
    .filter(({ row }) => row)
    .map(({ row }) => row)
    .join(",\n")}\n]\n`;

function connect() {
  $("scenario").onsubmit = (event) => {
    event.preventDefault();
    simulate();
  };
  $("stop").onclick = () => {
    halt("stopped");
    note("stopped");
  };
  $("file").oninput = () => {
    if (scenario.text === undefined) by_form = scenario;
    scenario = { text: $("file").value };
    show_scenario();
  };
  $("by-form").onclick = () => {
    scenario = by_form;
    show_scenario();
  };
  $("copy").onclick = copy_link;
  $("download").onclick = () => download("scenario.toml", $("file").value, "text/plain");
  $("rows").onclick = () => download("rows.json", rows(), "application/json");
  $("play").onclick = () => play(!shown.playing);
  $("time").oninput = () => {
    play(false);
    move($("time").valueAsNumber * shown.span);
  };
  $("zoom").onchange = () => {
    shown.span = span();
    move(Math.min(shown.time, shown.span));
  };
  $("results").addEventListener("seek", ({ detail }) => {
    play(false);
    move(detail * shown.span);
  });
  $("results").addEventListener("again", () => !shown.playing && draw());
  $("examples").append(...EXAMPLES.map(example));
  new ResizeObserver(draw).observe($("results"));
  matchMedia("(prefers-color-scheme: dark)").onchange = () => {
    shown.look = theme();
    for (const one of shown.drawings) one.forget?.();
    for (const mark of document.querySelectorAll(".swatch")) mark.replaceWith(swatch(mark.dataset.number));
    draw();
  };
  onhashchange = open_link;
}

function example({ words, ...own }) {
  const onclick = () => {
    scenario = structuredClone({ ...FIRST, ...own });
    show_scenario();
    simulate();
  };
  return element("button", {
    type: "button",
    textContent: words,
    onclick,
    title: title({ ...FIRST, ...own }),
  });
}

/** Runs what the link says, else what the page begins with. A link that cannot be read runs nothing: what was run in
 * its place would pass for what it says. */
async function open_link() {
  let fault = null;
  try {
    scenario = (await from_hash(location.hash)) ?? structuredClone(FIRST);
  } catch (error) {
    scenario = structuredClone(FIRST);
    fault = error.message;
  }
  show_scenario();
  if (fault === null) return simulate();
  halt("refused");
  refuse(`The link cannot be read: ${fault}. Copy all of it again, or fill in the form.`);
}

/** Ends what is under way. */
function halt(state) {
  turn++;
  stop();
  busy(false);
  results.state = state;
}

async function begin() {
  const { answer } = await ask({ ask: "choices" });
  choices = choices_of(answer);
  $("version").textContent = answer.version;
  connect();
  await open_link();
}

begin().catch((error) => {
  say(error.message);
  results.state = "broken";
  throw error;
});
