// What happens over time, with one axis for all runs: links, queues, flows. What is still to come is pale.

import { uplinks } from "weft/run";
import { element, paint, step_of, ticks, time as in_words, bytes as in_bytes } from "weft/look";

/** Room at the left for numbers. */
const LEFT = 56;
const RIGHT = 8;
const TICKS = 16;

/** A chart: `picture(context, frame, look)` paints all of it, once for each size and theme. */
function chart(className, label, picture, has_axis = false) {
  const canvas = element("canvas", { className, role: "img" });
  canvas.setAttribute("aria-label", label);
  const kept = document.createElement("canvas");
  let known = "";
  const draw = (look, time, span) => {
    paint(canvas, (context, width, height) => {
      const foot = has_axis ? TICKS : 2;
      const frame = { left: LEFT, top: 4, width: width - LEFT - RIGHT, height: height - foot - 4, span };
      frame.x = (seconds) => frame.left + (seconds / span) * frame.width;
      const wanted = [canvas.width, canvas.height, look.text, span].join();
      if (wanted !== known) {
        Object.assign(kept, { width: canvas.width, height: canvas.height });
        const own = kept.getContext("2d");
        own.setTransform(context.getTransform());
        if (has_axis) time_axis(own, frame, look);
        picture(own, frame, look);
        known = wanted;
      }
      reveal(context, kept, frame, look, time, [width, height]);
    });
  };
  // A click chooses a time.
  canvas.onpointerdown = canvas.onpointermove = (event) => {
    if (!event.buttons) return;
    const share = (event.offsetX - LEFT) / (canvas.clientWidth - LEFT - RIGHT);
    const detail = Math.max(0, Math.min(1, share));
    canvas.dispatchEvent(new CustomEvent("seek", { bubbles: true, detail }));
  };
  return { canvas, draw, forget: () => (known = "") };
}

/** What was up to `time`, and pale what comes. */
function reveal(context, kept, frame, look, time, [width, height]) {
  const at = frame.x(Math.min(time, frame.span));
  context.drawImage(kept, 0, 0, width, height);
  context.globalAlpha = 0.72;
  context.fillStyle = look.paper;
  context.fillRect(at, frame.top - 1, frame.left + frame.width - at + 1, frame.height + 2);
  context.globalAlpha = 1;
  context.fillStyle = look.text;
  context.fillRect(at - 0.5, frame.top - 2, 1, frame.height + 4);
}

function time_axis(context, frame, look) {
  context.fillStyle = look.soft;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "top";
  const all = ticks(frame.span, Math.max(2, frame.width / 90));
  for (const seconds of all) {
    const x = frame.x(seconds);
    context.fillRect(x, frame.top + frame.height, 1, 4);
    context.textAlign = x > frame.left + frame.width - 24 ? "right" : "center";
    context.fillText(in_words(seconds), x, frame.top + frame.height + 5);
  }
}

/** Numbers at the left: the top of the axis, and zero. */
function value_axis(context, frame, look, most, words) {
  context.fillStyle = look.soft;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "top";
  context.fillText(words(most), frame.left - 4, frame.top);
  context.textBaseline = "bottom";
  context.fillText(words(0), frame.left - 4, frame.top + frame.height);
  context.fillStyle = look.rule;
  context.fillRect(frame.left, frame.top, frame.width, 1);
  context.fillRect(frame.left, frame.top + frame.height, frame.width, 1);
}

/** How busy each uplink is: a row a link, the darker the busier. */
export function uplink_map(run) {
  const ports = uplinks(run).filter((port) => run.use[port]);
  return chart("map", "How busy each uplink is over time", (context, frame, look) => {
    const samples = run.time_s.length;
    if (!ports.length || !samples) return;
    const image = new ImageData(samples, ports.length);
    const ramp = look.ramp.map(in_numbers);
    ports.forEach((port, row) => {
      for (let at = 0; at < samples; at++)
        image.data.set(ramp[step_of(ramp, run.use[port][at])], 4 * (row * samples + at));
    });
    const small = document.createElement("canvas");
    Object.assign(small, { width: samples, height: ports.length });
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    const width = frame.x(run.time_s.at(-1)) - frame.left;
    context.drawImage(small, frame.left, frame.top, width, frame.height);
    rows_axis(context, frame, look, run, ports);
  });
}

/** Names of the first and the last switch at the left. */
function rows_axis(context, frame, look, run, ports) {
  context.fillStyle = look.soft;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  const [first, last] = [ports[0], ports.at(-1)].map((port) => run.links.from[port]);
  context.textBaseline = "top";
  context.fillText(fitting(context, first), frame.left - 4, frame.top);
  context.textBaseline = "bottom";
  context.fillText(fitting(context, last), frame.left - 4, frame.top + frame.height);
}

function fitting(context, name) {
  let shown = name;
  while (shown.length > 3 && context.measureText(shown).width > LEFT - 6) shown = `…${shown.slice(2)}`;
  return shown;
}

function in_numbers(colour) {
  const of = (at) => parseInt(colour.slice(at, at + 2), 16);
  return [of(1), of(3), of(5), 255];
}

const DIRECTIONS = [
  { name: "up", has: (tier) => tier === "leaf-up" || tier === "agg-up" },
  { name: "down", has: (tier) => tier === "spine-down" || tier === "core-down" },
  { name: "to GPUs", has: (tier) => tier === "leaf-down" },
];

/** The longest queue at every time: of ports up, down, and to GPUs. `longest`: of all runs. */
export function queue_lines(run, longest) {
  const lines = DIRECTIONS.map(({ has }) => {
    const ports = run.links.port.filter((port) => has(run.links.tier[port]) && run.queues[port]);
    return Array.from(run.time_s, (_, at) =>
      ports.reduce((most, port) => Math.max(most, run.queues[port][at]), 0),
    );
  });
  return chart("queues", "The longest queue over time", (context, frame, look) => {
    value_axis(context, frame, look, longest, in_bytes);
    lines.forEach((line, number) => {
      stroke(context, look, number);
      context.beginPath();
      line.forEach((bytes, at) => {
        const y = frame.top + frame.height * (1 - bytes / (longest || 1));
        context.lineTo(frame.x(run.time_s[at]), y);
      });
      context.stroke();
    });
  });
}

/** What the lines of queues are, for a legend. */
export const queue_legend = DIRECTIONS.map(({ name }) => name);

function stroke(context, look, number) {
  context.strokeStyle = look.line(number);
  context.setLineDash(look.dash(number));
  context.lineWidth = 1.6;
}

/** Every flow from its start to its finish, in the order of their starts. Those later than 19 of 20 stand out: none where
 * the last end together. */
export function flow_lines(run) {
  const late = run.finishes[Math.ceil(run.finishes.length * 0.95) - 1] ?? Infinity;
  return chart(
    "flows",
    "Every flow from start to finish",
    (context, frame, look) => {
      const each = frame.height / Math.max(1, run.flows.length);
      const thick = Math.max(each * 0.8, 0.75);
      run.flows.forEach(({ start, finish }, at) => {
        const [from, to] = [frame.x(start), frame.x(finish)];
        const y = frame.top + at * each;
        context.fillStyle = finish > late ? look.queue : look.ramp[4];
        context.fillRect(from, y, Math.max(0.8, to - from), thick);
      });
      context.fillStyle = look.soft;
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "right";
      context.textBaseline = "top";
      context.fillText(run.flows.length.toLocaleString("en-US"), frame.left - 4, frame.top);
      context.fillText("flows", frame.left - 4, frame.top + 12);
    },
    true,
  );
}

/** The share of flows that have finished, of all runs, and the time before which none can end, if it is one for all. */
export function finish_lines(runs, bound) {
  return chart(
    "finishes",
    "The share of flows that have finished, of every scheme",
    (context, frame, look) => {
      value_axis(context, frame, look, 1, (share) => `${share * 100} %`);
      if (bound) bound_line(context, frame, look, bound);
      runs.forEach((run, number) => finish_line(context, frame, look, run, number));
    },
    true,
  );
}

function bound_line(context, frame, look, bound) {
  const x = frame.x(bound);
  context.fillStyle = look.text;
  context.setLineDash([3, 3]);
  context.strokeStyle = look.text;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, frame.top);
  context.lineTo(x, frame.top + frame.height);
  context.stroke();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "bottom";
  const right = x > frame.left + frame.width / 2;
  context.textAlign = right ? "right" : "left";
  context.fillText("the bound", x + (right ? -4 : 4), frame.top + frame.height - 3);
}

function finish_line(context, frame, look, run, number) {
  stroke(context, look, number);
  context.lineWidth = 2;
  context.beginPath();
  const all = run.finishes.length;
  const bottom = frame.top + frame.height;
  context.moveTo(frame.left, bottom);
  // A point a pixel is enough.
  const step = Math.max(1, Math.floor(all / frame.width));
  for (let at = 0; at < all; at += step) {
    const x = frame.x(run.finishes[at]);
    context.lineTo(x, bottom - (frame.height * at) / all);
    context.lineTo(x, bottom - (frame.height * Math.min(all, at + step)) / all);
  }
  if (all) context.lineTo(frame.x(run.finishes[all - 1]), frame.top);
  context.stroke();
  context.setLineDash([]);
}
