// The fabric as a picture: GPUs below, leaves above them, then the tiers over those. A link is two halves, each of
// the port at its end: how dark it is says how busy the port is, and the bar from its switch how long its queue is.

import { failing, sample_at } from "weft/run";
import { element, paint, step_of } from "weft/look";

const NOBODY = 0xffffffff;
const MARKS = { down: "✕", degraded: "○", flaky: "≈" };

/** A canvas with the fabric of `run`; `draw(look, time, longest)` paints a moment of it. */
export function fabric_picture(run) {
  const canvas = element("canvas", { className: "fabric", role: "img" });
  canvas.setAttribute("aria-label", "The fabric: links by how busy they are, queues as bars");
  const plan = layout(run.fabric);
  const shown = element("p", { className: "shown" });
  const state = { canvas, shown, draw: null };
  let pointed = null;
  state.draw = (look, time, longest) => {
    paint(canvas, (context, width, height) => {
      const place = placing(width, height);
      const halves = plan.halves.map((half) => ({ ...half, ...ends(half, place) }));
      const moment = { run, look, time, at: sample_at(run, time), longest };
      draw_links(context, halves, moment, plan.links);
      draw_queues(context, halves, moment);
      draw_failures(context, halves, moment);
      draw_boxes(context, plan, place, look);
      state.halves = halves;
    });
    shown.textContent = pointed === null ? "" : words(run, pointed, time);
  };
  canvas.onmousemove = ({ offsetX, offsetY }) => {
    pointed = nearest(state.halves ?? [], offsetX, offsetY);
    canvas.dispatchEvent(new Event("again", { bubbles: true }));
  };
  canvas.onmouseleave = () => {
    pointed = null;
    canvas.dispatchEvent(new Event("again", { bubbles: true }));
  };
  return state;
}

/** Where everything is, from 0 to 1. */
function layout({ hosts, switches, links }) {
  const tiers = Math.max(...switches.tier) + 1;
  const place = tiers > 1 ? in_rows : on_a_ring;
  const rows = Array.from({ length: tiers }, () => []);
  switches.tier.forEach((tier, id) => rows[tier].push(id));
  const places = [];
  rows.forEach((row, tier) =>
    row.forEach((id, at) => (places[id] = place((at + 0.5) / row.length, tier / (tiers - 1)))),
  );
  const under = hosts_under(hosts, links);
  const at_host = new Map(under.map((host, at) => [host, place((at + 0.5) / hosts, -1)]));
  const halves = links.port.flatMap((port, at) => {
    const lower = links.host[at] === NOBODY ? places[links.switch[at]] : at_host.get(links.host[at]);
    const upper = places[links.upper[at]];
    const own = { is_host: links.host[at] !== NOBODY };
    return [
      { ...own, port, from: lower, to: upper },
      { ...own, port: links.reverse[at], from: upper, to: lower },
    ];
  });
  return { places, hosts: [...at_host.values()], tiers: switches.tier, halves, links: links.port.length };
}

/** A share of a row's width, and a row from 0 to 1; -1 is that of the GPUs, near their leaves: nothing is to be chosen
 * there. */
function in_rows(share, row) {
  return { x: share, y: row < 0 ? 1 : 0.72 * (1 - row) };
}

/** Where all switches are alike: a ring, with the GPUs around it. */
function on_a_ring(share, row) {
  const [angle, radius] = [2 * Math.PI * (share - 0.25), row < 0 ? 0.5 : 0.38];
  return { x: 0.5 + radius * 0.96 * Math.cos(angle), y: 0.5 + radius * Math.sin(angle) };
}

/** Hosts in the order of their leaves. */
function hosts_under(hosts, links) {
  const leaf = new Map();
  links.host.forEach((host, at) => {
    if (host !== NOBODY && !leaf.has(host)) leaf.set(host, links.upper[at]);
  });
  const all = Array.from({ length: hosts }, (_, host) => host);
  return all.sort((a, b) => (leaf.get(a) ?? 0) - (leaf.get(b) ?? 0) || a - b);
}

const MARGIN = 9;

function placing(width, height) {
  return ({ x, y }) => [x * width, MARGIN + y * (height - 2 * MARGIN)];
}

function ends(half, place) {
  const [[x0, y0], [x1, y1]] = [place(half.from), place(half.to)];
  // Within a row there would be other switches in the way.
  const bow = y0 === y1 && half.from.y > 0 && half.from.y < 1 ? Math.min(30, Math.abs(x1 - x0) / 4) : 0;
  return { x0, y0, x1, y1, mx: (x0 + x1) / 2, my: (y0 + y1) / 2 - bow };
}

/** Idle links first, so that nothing hides the busy ones. */
function draw_links(context, halves, { run, look, at }, links) {
  const steps = look.ramp.map(() => []);
  for (const half of halves) steps[step_of(look.ramp, run.use[half.port]?.[at] ?? 0)].push(half);
  const width = links > 500 ? 0.7 : links > 150 ? 1.1 : 1.8;
  steps.forEach((step, number) => {
    context.strokeStyle = look.ramp[number];
    context.lineWidth = number === 0 ? width * 0.6 : width * (0.8 + (0.6 * number) / steps.length);
    context.beginPath();
    for (const { x0, y0, mx, my } of step) {
      context.moveTo(x0, y0);
      context.lineTo(mx, my);
    }
    context.stroke();
  });
}

function draw_queues(context, halves, { run, look, at, longest }) {
  context.strokeStyle = look.queue;
  context.lineWidth = 3.5;
  context.beginPath();
  for (const { port, x0, y0, mx, my } of halves) {
    const share = (run.queues[port]?.[at] ?? 0) / (longest || 1);
    if (share < 0.02) continue;
    context.moveTo(x0, y0);
    context.lineTo(x0 + (mx - x0) * share, y0 + (my - y0) * share);
  }
  context.stroke();
}

function draw_failures(context, halves, { run, look, time }) {
  context.font = "bold 13px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  const done = new Set();
  for (const { port, x0, y0, x1, y1, mx, my } of halves) {
    const [first] = failing(run, port, time);
    if (!first) continue;
    context.strokeStyle = look.text;
    context.lineWidth = 1.2;
    context.setLineDash([4, 4]);
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(mx, my);
    context.stroke();
    context.setLineDash([]);
    const place = `${Math.min(x0, x1)} ${Math.max(x0, x1)} ${Math.min(y0, y1)}`;
    if (done.has(place)) continue;
    done.add(place);
    context.fillStyle = look.paper;
    context.beginPath();
    context.arc(mx, my, 8, 0, 7);
    context.fill();
    context.fillStyle = look.text;
    context.fillText(MARKS[first.kind], mx, my + 0.5);
  }
}

function draw_boxes(context, plan, place, look) {
  context.fillStyle = look.text;
  const most = Math.max(...[0, 1, 2, 3].map((tier) => plan.tiers.filter((one) => one === tier).length));
  const size = Math.max(2, Math.min(7, 100 / most));
  for (const spot of plan.places) {
    const [x, y] = place(spot);
    context.fillRect(x - size, y - Math.min(4, size), 2 * size, 2 * Math.min(4, size));
  }
  context.fillStyle = look.soft;
  const radius = Math.max(0.8, Math.min(3, 90 / plan.hosts.length));
  for (const spot of plan.hosts) {
    const [x, y] = place(spot);
    context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  }
}

/** The half of a link that is nearest to a place, if it is near. */
function nearest(halves, x, y) {
  let found = null;
  let least = 6;
  for (const { port, x0, y0, mx, my } of halves) {
    const [dx, dy] = [mx - x0, my - y0];
    const along = Math.max(0, Math.min(1, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
    const far = Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
    if (far < least) [found, least] = [port, far];
  }
  return found;
}

function words(run, port, time) {
  const at = sample_at(run, time);
  const name = `${run.links.from[port]} → ${run.links.to[port]}`;
  const use = run.use[port] ? `, ${Math.round((run.use[port][at] ?? 0) * 100)} % busy` : "";
  const queue = run.queues[port] ? `, ${Math.round((run.queues[port][at] ?? 0) / 1e3)} kB wait` : "";
  const broken = failing(run, port, time).map(({ kind }) => `, ${kind}`);
  return name + use + queue + broken.join("");
}
