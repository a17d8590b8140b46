import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import { reaches, startCoverage } from "./coverage.mjs";
import { createMutator } from "./mutate.mjs";
import { createRandom } from "./random.mjs";
import { shrink } from "./shrink.mjs";

const ownScripts = /\/packages\/[^/]+\/[^/]+\/dist\//;
// Reading the counters costs as much as hundreds of inputs: they are read once for so many.
const batchSize = 256;

/**
 * What is fuzzed. `run` throws when a property is broken; what it returns, a short text such as the code of a refusal, counts as
 * something reached, like a block.
 * @typedef {object} Target
 * @property {(input: Buffer) => string | Promise<string>} run
 * @property {readonly (string | Uint8Array)[]} seeds Strings have a character a byte.
 * @property {readonly string[]} dictionary
 * @property {number} [maxLength] Bytes of an input, default 512.
 * @property {RegExp} [scripts] URLs of the scripts whose blocks count. Default the built packages.
 */

export class Finding extends Error {
  /** @param {Buffer} input @param {unknown} cause */
  constructor(input, cause) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.input = input;
  }
}

/**
 * Runs a target on its corpus and then on inputs made from it, until `seconds` or `runs` are over. Rejects with a Finding.
 * @param {Target} target
 * @param {object} how
 * @param {readonly Buffer[]} how.corpus
 * @param {string} how.seed The same one gives the same inputs in the same order.
 * @param {number} how.seconds
 * @param {number} how.runs
 * @param {(input: Buffer) => void} how.onRun Is told each input before it runs.
 */
export async function fuzz(target, { corpus, seed, seconds, runs, onRun }) {
  const { seeds, dictionary, maxLength = 512, scripts = ownScripts } = target;
  const random = createRandom(seed);
  const mutate = createMutator({ random, dictionary, maxLength });
  const coverage = startCoverage(scripts);
  /** @type {Set<string>} */
  const outcomes = new Set();
  /** @type {Buffer[]} */
  const kept = [];
  const started = performance.now();
  const inputs = createHash("sha256");
  let executed = 0;
  let countersUsed = true;

  for (const text of seeds)
    await keepIfNew(typeof text === "string" ? Buffer.from(text, "latin1") : text, false);
  const fromSeeds = kept.length;
  for (const input of corpus) await keepIfNew(input, false);
  const fromCorpus = kept.length - fromSeeds;
  // Without the corpus, what is drawn from would be nothing.
  if (kept.length === 0) kept.push(Buffer.alloc(0));
  while (!isOver()) await runBatch();
  coverage.stop();
  return {
    executed,
    inputs: inputs.digest("hex").slice(0, 12),
    seconds: (performance.now() - started) / 1000,
    corpus: kept.slice(fromSeeds),
    fromCorpus,
    outcomes: outcomes.size,
    ...coverage.summary(),
  };

  function isOver() {
    return executed >= runs || performance.now() - started >= seconds * 1000;
  }

  async function runBatch() {
    const batch = Array.from({ length: batchSize }, () => mutate(draw(), random.pick(kept)));
    if (countersUsed) coverage.take();
    const promising = [];
    for (const input of batch) if (!outcomes.has(await run(input))) promising.push(input);
    const trace = coverage.take();
    countersUsed = false;
    // One by one, to learn which of them it was.
    const again = coverage.newIn(trace) === undefined ? promising : batch;
    for (const input of again) await keepIfNew(input, true);
    // What a second run does not reach again, such as a first use, would otherwise be looked for in every batch.
    coverage.add(trace);
  }

  // Half of them late ones: they are where the search is.
  function draw() {
    const recent = Math.max(1, kept.length >> 2);
    return random.below(2) === 0 ? random.pick(kept) : kept[kept.length - 1 - random.below(recent)];
  }

  async function keepIfNew(input, shrinking) {
    const { outcome, trace } = await traced(input);
    const fresh = coverage.newIn(trace);
    const isNewOutcome = !outcomes.has(outcome);
    if (fresh === undefined && !isNewOutcome) return;
    coverage.add(trace);
    outcomes.add(outcome);
    const isEnough = async (candidate) => {
      if (fresh === undefined) return (await run(candidate)) === outcome;
      const found = await traced(candidate);
      return found.outcome === outcome && reaches(found.trace, fresh);
    };
    kept.push(shrinking ? await shrink(input, isEnough) : input);
  }

  async function traced(input) {
    if (countersUsed) coverage.take();
    const outcome = await run(input);
    countersUsed = false;
    return { outcome, trace: coverage.take() };
  }

  async function run(input) {
    executed += 1;
    inputs.update(input);
    countersUsed = true;
    onRun(input);
    try {
      return await target.run(input);
    } catch (error) {
      throw new Finding(await shrink(input, (candidate) => breaksAlike(candidate, error)), error);
    }
  }

  async function breaksAlike(candidate, error) {
    onRun(candidate);
    try {
      await target.run(candidate);
      return false;
    } catch (other) {
      return kindOf(other) === kindOf(error);
    }
  }
}

// The line that names the property; what differs stands below it.
function kindOf(error) {
  return error instanceof Error ? `${error.name} ${error.message.split("\n")[0]}` : String(error);
}
