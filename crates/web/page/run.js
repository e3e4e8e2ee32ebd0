// A finished run, made ready to be looked at: what each port held and sent when, and when flows ended.

/** Of `answer`, as the worker gives it, of the run that is called `label`. */
export function ready({ label, key }, { answer, ms }) {
  const row = JSON.parse(answer.row);
  const { flows, links, fabric } = answer;
  const order = flows.start_s.map((_, at) => at);
  order.sort((a, b) => flows.start_s[a] - flows.start_s[b] || flows.finish_s[a] - flows.finish_s[b]);
  const run = {
    ...{ label, key, ms, row, text: answer.row, warnings: answer.warnings },
    ...{ time_s: answer.time_s, interval_s: answer.interval_s, queues: answer.queues, fabric, links },
    flows: order.map((at) => ({
      start: flows.start_s[at],
      finish: flows.finish_s[at],
      name: `GPU ${flows.src[at]} to ${flows.dst[at]}`,
    })),
    finishes: Float64Array.from(flows.finish_s).sort(),
    failures: failures(fabric.failures),
  };
  run.use = use(run, answer.sent);
  run.longest = Object.values(run.queues).reduce((most, bytes) => Math.max(most, top(bytes)), 0);
  return run;
}

/** How far a run is at `time`: its flows that have finished, from 0 to 1. */
export function finished(run, time) {
  let [low, high] = [0, run.finishes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (run.finishes[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return run.finishes.length ? low / run.finishes.length : 1;
}

/** The number of the sample of `time`; when all is over there is none of that number. */
export function sample_at(run, time) {
  return Math.ceil(time / run.interval_s - 1e-9);
}

/** The failures of a port at `time`. */
export function failing(run, port, time) {
  return (run.failures.get(port) ?? []).filter((one) => one.start <= time && time < one.end);
}

/** Ports of links that lead up from a switch, by their names: what a scheme has to balance. */
export function uplinks(run) {
  const up = run.links.tier.map((tier) => tier === "leaf-up" || tier === "agg-up");
  return run.links.port.filter((port) => up[port]);
}

function failures(table) {
  const all = new Map();
  table.port.forEach((port, at) => {
    const [kind, lost] = [table.kind[at], table.lost[at]];
    // For ever is null in JSON.
    const one = { kind, lost, start: table.start_s[at], end: table.end_s[at] ?? Infinity };
    all.set(port, [...(all.get(port) ?? []), one]);
  });
  return all;
}

/** By port, the share of what its link can carry that it sent, sample by sample; of a slow link of what is left. */
function use({ links, time_s, interval_s, failures }, sent) {
  const all = {};
  for (const [port, bytes] of Object.entries(sent)) {
    const most = (links.rate_bps[port] / 8) * interval_s;
    const slow = (failures.get(Number(port)) ?? []).filter((one) => one.kind === "degraded");
    all[port] = bytes.map((bytes, at) => {
      const now = slow.filter((one) => one.start < time_s[at] && time_s[at] <= one.end);
      return Math.min(1, bytes / now.reduce((most, one) => most * (1 - one.lost), most));
    });
  }
  return all;
}

const top = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 0);
