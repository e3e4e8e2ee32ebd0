// Numbers in words, and colours that people tell apart who see few.

const STEPS = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "us"],
  [1e-9, "ns"],
];

/** Seconds, with a unit. */
export function time(seconds) {
  if (!seconds) return "0";
  const [worth, unit] = STEPS.find(([worth]) => seconds >= worth * 0.9995) ?? STEPS.at(-1);
  return `${digits(seconds / worth)} ${unit}`;
}

/** Bytes, with a unit. */
export function bytes(number) {
  const steps = [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ];
  const [worth, unit] = steps.find(([worth]) => number >= worth * 0.9995) ?? [1, "B"];
  return `${digits(number / worth)} ${unit}`;
}

/** A count, in groups of three digits. */
export const count = (number) => Math.round(number).toLocaleString("en-US");

/** Four digits at most. */
export function digits(number) {
  if (number >= 1000) return count(number);
  return String(Number(number.toPrecision(number >= 100 ? 4 : 3)));
}

/** Round numbers from 0 up to `most`, about `wanted` of them. */
export function ticks(most, wanted) {
  if (!(most > 0)) return [0];
  const power = 10 ** Math.floor(Math.log10(most / wanted));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => most / step <= wanted);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

// Lines that differ in lightness and hue: of Okabe and Ito's colours.
const LINES = {
  light: ["#0072b2", "#d55e00", "#007a5a", "#a3487f", "#6b6100", "#444444"],
  dark: ["#56b4e9", "#ff9e57", "#2fcf9f", "#e39cc6", "#f0e442", "#cccccc"],
};
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [1, 3]];

// From idle to full, in one hue that only gets darker (or lighter, on dark paper).
const RAMPS = {
  light: ["#e4e8ee", "#c3d5ea", "#9fbfe2", "#77a5d6", "#4f89c6", "#2f6cb0", "#1a5194", "#0d3873", "#051f4d"],
  dark: ["#2a303a", "#22405f", "#225180", "#2a66a2", "#3a7fc2", "#579adb", "#7fb6ec", "#addbfa", "#e2f5ff"],
};

/** What the drawings are drawn with, as the page is set now. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const kind = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return {
    text: of("--text"),
    soft: of("--soft"),
    rule: of("--rule"),
    paper: of("--paper"),
    queue: of("--queue"),
    ramp: RAMPS[kind],
    line: (number) => LINES[kind][number % LINES[kind].length],
    dash: (number) => DASHES[number % DASHES.length],
  };
}

/** The step of a ramp for a share from 0 to 1. */
export function step_of(ramp, share) {
  return Math.max(0, Math.min(ramp.length - 1, Math.round(share * (ramp.length - 1))));
}

/** A canvas as sharp as the screen; `draw(context, width, height)` in CSS pixels. */
export function paint(canvas, draw) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio || 1;
  const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== across || canvas.height !== down)
    Object.assign(canvas, { width: across, height: down });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  if (width && height) draw(context, width, height);
}

/** An element with properties and children. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on") || key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
