import { AsyncLocalStorage } from "node:async_hooks";
import { hasSubscribers } from "node:diagnostics_channel";
import process from "node:process";
import { promisify } from "node:util";
import { TestEnvironment } from "jest-environment-node";
import { keepCompilations } from "./compiled-modules.mjs";
import { recordOutput, Written } from "./written.mjs";

const events = ["guard", "notice", "key-use", "settled", "lease-lost", "built", "thrown"];
const traces = ["claim", "wait", "store", "event"];
const channels = [
  ...events.map((name) => `countersign:${name}`),
  ...traces.flatMap((name) =>
    ["start", "end", "asyncStart", "asyncEnd", "error"].map(
      (phase) => `tracing:countersign:${name}:${phase}`,
    ),
  ),
];

keepCompilations();

// Until Node 24 each promise looks at every AsyncLocalStorage of its process that was ever used, and a worker's files leave theirs:
// a quarter of the processors' time was that.
const storages = new Set();
for (const name of ["run", "enterWith"]) {
  const use = AsyncLocalStorage.prototype[name];
  AsyncLocalStorage.prototype[name] = function noted(...args) {
    storages.add(this);
    return use.apply(this, args);
  };
}

// The channels are the process's, and a worker runs many files: whoever still listens when its file is over silences the lines on
// stderr of every later one. The file that left a subscriber is the one that fails.
export default class Environment extends TestEnvironment {
  #heardBefore = channels.filter(hasSubscribers);
  #timers = new Set();
  #written = new Written();
  #isVerbose;

  constructor(config, context) {
    super(config, context);
    this.#isVerbose = config.globalConfig.verbose === true;
  }

  async setup() {
    await super.setup();
    recordOutput(this.global, { written: this.#written, isVerbose: this.#isVerbose });
    this.#noteTimers();
  }

  /** Fails a test that writes what it does not expect, and the file for what is written outside of its tests. */
  async handleTestEvent(event, state) {
    if (event.name === "test_start")
      this.#settle("What runs before the first test or between two", state.unhandledErrors);
    if (event.name !== "test_done" && event.name !== "run_finish") return;
    // Node emits a warning in the next tick.
    await new Promise((resolve) => {
      process.nextTick(resolve);
    });
    if (event.name === "test_done") this.#settle("This test", event.test.errors);
    else this.#settle("What runs after the last test", state.unhandledErrors);
  }

  #settle(where, errors) {
    const error = this.#written.settle(where);
    if (error !== undefined) errors.push(error);
  }

  async teardown() {
    this.#written.end();
    for (const timer of this.#timers) clearTimeout(timer);
    await super.teardown();
    for (const storage of storages) storage.disable();
    storages.clear();
    const left = channels.filter((name) => hasSubscribers(name) && !this.#heardBefore.includes(name));
    if (left.length > 0) throw new Error(`this file has left a subscriber on ${left.join(", ")}`);
  }

  // A store that a page's example makes is never closed: its pruning would fail, and say so, in a later file.
  #noteTimers() {
    const { setTimeout: begin, clearTimeout: end } = this.global;
    const timers = this.#timers;
    const noted = (callback, delayMs, ...rest) => {
      const timer = begin(callback, delayMs, ...rest);
      if (delayMs >= 1000) timers.add(timer);
      return timer;
    };
    noted[promisify.custom] = begin[promisify.custom];
    this.global.setTimeout = noted;
    this.global.clearTimeout = (timer) => {
      timers.delete(timer);
      end(timer);
    };
  }
}
