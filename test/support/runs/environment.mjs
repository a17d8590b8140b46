import { AsyncLocalStorage } from "node:async_hooks";
import { hasSubscribers } from "node:diagnostics_channel";
import { TestEnvironment } from "jest-environment-node";

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

  async teardown() {
    await super.teardown();
    for (const storage of storages) storage.disable();
    storages.clear();
    const left = channels.filter((name) => hasSubscribers(name) && !this.#heardBefore.includes(name));
    if (left.length > 0) throw new Error(`this file has left a subscriber on ${left.join(", ")}`);
  }
}
