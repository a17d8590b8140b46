// One target in a thread of its own: its loop may hang, and the main thread watches it.
import { parentPort, workerData } from "node:worker_threads";
import { Finding, fuzz } from "./loop.mjs";

const { url, corpus, shared, ...how } = workerData;
const counter = new Int32Array(shared.counter);
const current = Buffer.from(shared.input);
const target = await import(url);

function onRun(input) {
  current.set(input.subarray(0, current.length));
  Atomics.store(counter, 1, Math.min(input.length, current.length));
  Atomics.add(counter, 0, 1);
}

function tell(message) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that of a window
  parentPort.postMessage(message);
}

try {
  const report = await fuzz(target, { ...how, corpus: corpus.map((bytes) => Buffer.from(bytes)), onRun });
  tell({ report });
} catch (error) {
  if (!(error instanceof Finding)) throw error;
  const { stack } = error.cause instanceof Error ? error.cause : error;
  tell({ finding: { input: error.input, what: stack } });
}
