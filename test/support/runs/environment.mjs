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

// The channels are the process's, and a worker runs many files: whoever still listens when its file is over silences the lines on
// stderr of every later one. The file that left a subscriber is the one that fails.
export default class Environment extends TestEnvironment {
  #heardBefore = channels.filter(hasSubscribers);

  async teardown() {
    await super.teardown();
    const left = channels.filter((name) => hasSubscribers(name) && !this.#heardBefore.includes(name));
    if (left.length > 0) throw new Error(`this file has left a subscriber on ${left.join(", ")}`);
  }
}
