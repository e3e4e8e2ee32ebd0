// The engine in a thread of its own. It gets the compiled engine's bytes first, and then questions.

let engine = null;

onmessage = async ({ data }) => {
  if (data.bytes) {
    engine = (await WebAssembly.instantiate(data.bytes)).instance.exports;
    return postMessage({ ready: true });
  }
  try {
    const began = performance.now();
    const said = JSON.parse(ask(JSON.stringify(data.question)));
    const ms = performance.now() - began;
    if (said.error) return postMessage(said);
    const answer = data.question.ask === "run" ? compact(said.answer) : said.answer;
    postMessage({ answer, ms }, buffers(answer));
  } catch (trap) {
    // Nothing of this engine can be trusted any more.
    postMessage({ error: { line: why(trap), broken: true } });
  }
};

/** What a trap means. After a panic the text says where; the engine ends without one, and texts and arrays are too
 * long, where memory is at its end. */
function why(trap) {
  const ended = trap instanceof WebAssembly.RuntimeError;
  const panic = ended ? text() : "";
  const too_long = trap instanceof RangeError && !trap.message.includes("stack");
  if (too_long || (ended && !panic && trap.message === "unreachable"))
    return "the run needs more memory than a page has, 4 GB at most; use fewer hosts or messages, or weft run";
  return `unexpected: ${panic || trap}; please report it with this scenario`;
}

function ask(question) {
  const bytes = new TextEncoder().encode(question);
  const at = engine.weft_room(bytes.length) >>> 0;
  new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
  engine.weft_answer();
  return text();
}

function text() {
  const { memory, weft_text, weft_text_bytes } = engine;
  return new TextDecoder().decode(new Uint8Array(memory.buffer, weft_text() >>> 0, weft_text_bytes() >>> 0));
}

function buffers({ time_s, queues = {}, sent = {} }) {
  const arrays = [time_s, ...Object.values(queues), ...Object.values(sent)];
  return arrays.filter((array) => array?.buffer).map(({ buffer }) => buffer);
}

/** The result of a run with series as arrays of numbers by port, which are handed over without a copy. */
function compact({ series, ...rest }) {
  const { time_s, interval_s, queue_ports, sent_ports, queues, sent } = series;
  const by_port = (ports, lists) =>
    Object.fromEntries(ports.map((port, at) => [port, Float32Array.from(lists[at])]));
  return {
    ...rest,
    ...{ interval_s, time_s: Float64Array.from(time_s) },
    ...{ queues: by_port(queue_ports, queues), sent: by_port(sent_ports, sent) },
  };
}
