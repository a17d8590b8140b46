import { Worker } from "node:worker_threads";

const longestInput = 65_536;
const pollMs = 100;
// Of the processor's time, not of the clock's: a machine that stands still is no hang.
const hangMicroseconds = 1_000_000;

/**
 * Fuzzes one target in a worker. Resolves with its report, or with a finding: an input that broke a property or that
 * the target worked on for more than a second.
 */
export async function fuzzWatched({ url, corpus, seed, seconds, runs }) {
  const shared = { counter: new SharedArrayBuffer(8), input: new SharedArrayBuffer(longestInput) };
  const counter = new Int32Array(shared.counter);
  const worker = new Worker(new URL("worker.mjs", import.meta.url), {
    workerData: { url, corpus, seed, seconds, runs, shared },
  });

  let last = { count: 0, usage: process.cpuUsage() };
  let endAsHung;
  const hung = new Promise((resolve) => {
    endAsHung = resolve;
  });
  const watchdog = setInterval(() => {
    const count = Atomics.load(counter, 0);
    if (count !== last.count || count === 0) {
      last = { count, usage: process.cpuUsage() };
      return;
    }
    const { user, system } = process.cpuUsage(last.usage);
    if (user + system < hangMicroseconds) return;
    const input = Buffer.from(shared.input.slice(0, Atomics.load(counter, 1)));
    endAsHung({ finding: { input, what: "the input takes more than a second of the processor" } });
  }, pollMs);

  try {
    return await Promise.race([resultOf(worker), hung]);
  } finally {
    clearInterval(watchdog);
    await worker.terminate();
  }
}

function resultOf(worker) {
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the worker ended with ${code}`)));
  });
}
