// The engine, unpacked from the page, in as many workers as there are runs at a time.

import { through } from "weft/scenario";

/** What the engine refuses, in the one line that it says. */
export class Refusal extends Error {
  constructor({ line, key = null }) {
    super(line);
    this.key = key;
  }
}

const MOST_WORKERS = Math.max(1, Math.min(4, navigator.hardwareConcurrency || 2));
const part = (id) => document.getElementById(id).textContent;

let bytes = null;
const idle = [];
const busy = new Set();
const waiting = [];

/** Asks the engine; `question` is what `answers.rs` takes. Resolves to `{answer, ms}`. */
export function ask(question) {
  return new Promise((resolve, reject) => {
    waiting.push({ question, resolve, reject });
    serve();
  });
}

/** Ends all that runs or waits. */
export function stop() {
  for (const one of busy) one.worker?.terminate();
  for (const one of [...busy, ...waiting.splice(0)]) one.reject(new Refusal({ line: "stopped" }));
  busy.clear();
}

async function serve() {
  if (!waiting.length || busy.size >= MOST_WORKERS) return;
  const job = waiting.shift();
  busy.add(job);
  try {
    const worker = idle.pop() ?? (await start());
    if (!busy.has(job)) return void idle.push(worker);
    job.worker = worker;
  } catch (error) {
    busy.delete(job);
    job.reject(error);
    return;
  }
  job.worker.onmessage = ({ data }) => {
    busy.delete(job);
    if (data.error?.broken) job.worker.terminate();
    else idle.push(job.worker);
    if (data.error) job.reject(new Refusal(data.error));
    else job.resolve(data);
    serve();
  };
  job.worker.postMessage({ question: job.question });
}

async function start() {
  bytes ??= unpack(part("engine"));
  const worker = new Worker(script());
  const compiled = await bytes;
  await new Promise((resolve, reject) => {
    worker.onmessage = resolve;
    worker.onerror = (event) => reject(new Refusal({ line: `the engine does not start: ${event.message}` }));
    worker.postMessage({ bytes: compiled });
  });
  return worker;
}

// Pages that come from a folder may start workers only from what they hold themselves.
let address = null;
const script = () => (address ??= URL.createObjectURL(new Blob([part("worker")])));

function unpack(letters) {
  const plain = atob(letters.trim());
  const packed = Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  return through(new DecompressionStream("gzip"), packed);
}
