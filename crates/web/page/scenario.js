// What the form says: as a plain object, as an experiment file, and as the end of a link.
//
// {fabric, workload, failure: {name, keys}, schemes: [name], seed}; names and values are text, keys those of
// experiment files. A failure named "none" is none. Where somebody wrote the file by hand there is only {text}.

/** What the page begins with. */
export const FIRST = {
  fabric: {
    name: "leaf-spine",
    keys: { leaves: "8", spines: "8", hosts_per_leaf: "8", link: "400Gbps", delay: "500ns" },
  },
  workload: {
    kind: "collective",
    name: "all-reduce",
    keys: { algorithm: "recursive-doubling", size: "4MB" },
  },
  failure: { name: "none", keys: {} },
  schemes: ["ecmp", "spray", "twill"],
  seed: "1",
};

/** Values of keys without which there is no fabric or workload, where nobody has said any. */
export const USUAL = {
  leaves: "8",
  spines: "8",
  hosts_per_leaf: "8",
  k: "8",
  rails: "8",
  groups: "5",
  routers: "4",
  global_ports: "1",
  sizes: "4x4",
  size: "4MB",
};

/** What can fail: words for the form, and keys with their first values. */
export const FAILURES = {
  none: { words: "nothing", keys: {} },
  slow: {
    words: "a slow link",
    keys: { kind: "degraded", lost: "0.75", tier: "leaf-up", count: "1", groups: "[0]", start: "0us" },
  },
  dead: {
    words: "a link that dies",
    keys: { kind: "down", start: "50us", detect: "200us", tier: "leaf-up", count: "1", groups: "[0]" },
  },
  flaky: {
    words: "a flaky link",
    keys: { kind: "flaky", every: "20us", length: "2us", tier: "leaf-up", count: "1", groups: "[0]" },
  },
  switch: {
    words: "a spine that dies",
    keys: { kind: "down", start: "50us", detect: "200us", tier: "spines", count: "1" },
  },
};

/** A scenario as an experiment file; `interval`: how often to look at ports. */
export function toml(scenario, interval) {
  if (scenario.text !== undefined) return scenario.text;
  const { fabric, workload, failure, schemes, seed } = scenario;
  const lines = [`title = ${quoted(title(scenario))}`];
  lines.push("[fabric]", `topology = ${quoted(fabric.name)}`, ...pairs(fabric.keys));
  lines.push("[workload]", `${workload.kind} = ${quoted(workload.name)}`, ...pairs(workload.keys));
  if (failure.name !== "none") lines.push(`[failures.${failure.name}]`, ...pairs(failure.keys));
  if (interval) {
    lines.push("[probe]", `interval = ${quoted(interval)}`);
    lines.push('ports = ["* -> *"]', 'sent = ["* -> *"]');
  }
  lines.push("[sweep]", `"balance.scheme" = [${schemes.map(quoted).join(", ")}]`);
  lines.push(`seeds = [${seed}]`);
  return lines.join("\n") + "\n";
}

/** What a scenario is, in a line. */
export function title({ fabric, workload, failure }) {
  const size = workload.keys.size ? ` of ${workload.keys.size}` : "";
  const how = workload.keys.algorithm ? ` (${workload.keys.algorithm})` : "";
  const broken = failure.name === "none" ? "" : `, ${FAILURES[failure.name].words}`;
  return `${workload.name}${size}${how} on a ${fabric.name}${broken}`;
}

function pairs(keys) {
  return Object.entries(keys).map(([key, value]) => `${key} = ${value_of(value)}`);
}

/** Numbers, booleans and lists as they are, all else in quotes. */
function value_of(text) {
  const trimmed = text.trim();
  return /^([-+]?\d+(\.\d+)?|true|false|\[.*\])$/.test(trimmed) ? trimmed : quoted(trimmed);
}

// Texts of TOML have the escapes of JSON.
const quoted = (text) => JSON.stringify(text);

/** The end of a link to a scenario, after its `#`. */
export async function to_hash(scenario) {
  if (scenario.text !== undefined) return `toml=${await packed(scenario.text)}`;
  const { fabric, workload, failure, schemes, seed } = scenario;
  const parts = [
    `fabric=${short(fabric)}`,
    `${workload.kind}=${short(workload)}`,
    `schemes=${schemes.map(escaped).join(",")}`,
  ];
  if (failure.name !== "none") parts.push(`failure=${short(failure)}`);
  parts.push(`seed=${escaped(seed)}`);
  return parts.join("&");
}

const KINDS = ["collective", "pattern", "model"];
const PARTS = ["fabric", ...KINDS, "schemes", "failure", "seed", "toml"];

/** The scenario of a link; null if it is none. Throws what is wrong with it. */
export async function from_hash(hash) {
  const parts = once(hash.replace(/^#/, "").split("&").filter(Boolean).map(halves("=")));
  if (!parts.size) return null;
  for (const name of parts.keys()) if (!PARTS.includes(name)) throw new Error(`${name} is not known`);
  if (parts.has("toml") && parts.size > 1) throw new Error("there is a whole file in it, and more");
  if (parts.has("toml")) return { text: await unpacked(parts.get("toml")) };
  const [kind, other] = KINDS.filter((one) => parts.has(one));
  if (other) throw new Error(`there are two jobs in it, ${kind} and ${other}`);
  if (!parts.has("fabric")) throw new Error("there is no fabric in it");
  if (!kind) throw new Error("there is no job in it");
  const failure = parts.has("failure") ? long(parts.get("failure")) : { name: "none", keys: {} };
  if (!Object.hasOwn(FAILURES, failure.name)) throw new Error(`failure ${failure.name} is not known`);
  const schemes = (parts.get("schemes") ?? "").split(",").filter(Boolean).map(decodeURIComponent);
  return {
    fabric: long(parts.get("fabric")),
    workload: { kind, ...long(parts.get(kind)) },
    failure,
    schemes: schemes.length ? schemes : FIRST.schemes,
    seed: decodeURIComponent(parts.get("seed") ?? FIRST.seed),
  };
}

/** Pairs as a map; throws if a name is there twice, since only one of its values would count. */
function once(pairs) {
  const all = new Map(pairs);
  const twice = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) < at);
  if (twice) throw new Error(`${twice[0]} is there twice`);
  return all;
}

/** What cuts a text in two at the first `mark`. */
const halves = (mark) => (text) => {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + mark.length)];
};

/** `name:key=value,...`, as on the command line. */
function short({ name, keys }) {
  const pairs = Object.entries(keys).map(([key, value]) => `${escaped(key)}=${escaped(value)}`);
  return escaped(name) + (pairs.length ? `:${pairs.join(",")}` : "");
}

function long(text) {
  const [name, rest] = halves(":")(text);
  // Lists have commas of their own.
  const pairs = rest.split(/,(?![^[]*\])/).filter(Boolean).map(halves("="));
  const keys = pairs.map((pair) => pair.map(decodeURIComponent));
  return { name: decodeURIComponent(name), keys: Object.fromEntries(once(keys)) };
}

// Brackets and slashes may stay as they are.
function escaped(text) {
  return encodeURIComponent(text).replace(/%(5B|5D|2F)/g, decodeURIComponent);
}

/** Text, deflated, in letters that links may have. */
async function packed(text) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(text));
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return letters.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpacked(letters) {
  try {
    const plain = atob(letters.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
    return new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes));
  } catch {
    throw new Error("its file is damaged");
  }
}

/** What comes out of a stream that bytes go into. */
export async function through(stream, bytes) {
  const out = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(out).arrayBuffer());
}

/** A round interval that cuts so many seconds into some hundred parts. */
export function interval_for(seconds) {
  const nanoseconds = Math.max(10, (seconds * 1e9) / 150);
  const power = 10 ** Math.floor(Math.log10(nanoseconds));
  const digit = [1, 2, 5, 10].find((digit) => digit * power >= nanoseconds);
  const found = digit * power;
  return found < 1000 ? `${found}ns` : `${found / 1000}us`;
}
