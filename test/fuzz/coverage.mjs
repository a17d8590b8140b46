import { Session } from "node:inspector";

/**
 * What a run reached: for each function that was entered, by file and place, a byte per character of it, 1 where it was executed.
 * @typedef {Map<string, Uint8Array>} Trace
 */

/**
 * Block coverage of the scripts of this thread whose URL matches `scripts`, from V8's own counters. Nothing is instrumented: the code
 * that runs is the built one.
 * @param {RegExp} scripts
 */
export function startCoverage(scripts) {
  const session = new Session();
  session.connect();
  post("Profiler.enable");
  // Whether a block ran, not how often: so that the inputs of a whole batch can be asked for at once.
  post("Profiler.startPreciseCoverage", { callCount: false, detailed: true });
  /** @type {Trace} */
  const known = new Map();

  return {
    /**
     * What was reached since the last call. Costs some 300 microseconds, hundreds of times what a parser needs for an input.
     * @returns {Trace}
     */
    take() {
      const trace = new Map();
      for (const { url, functions } of post("Profiler.takePreciseCoverage").result) {
        if (scripts.test(url)) for (const { ranges } of functions) addFunction(trace, url, ranges);
      }
      return trace;
    },

    /**
     * The part of a trace that no earlier one had; undefined when there is none.
     * @param {Trace} trace
     * @returns {Trace | undefined}
     */
    newIn(trace) {
      const found = new Map();
      for (const [place, reached] of trace) {
        const before = known.get(place);
        const fresh = before === undefined ? reached : reached.map((bit, index) => bit & ~before[index]);
        if (fresh.includes(1)) found.set(place, fresh);
      }
      return found.size === 0 ? undefined : found;
    },

    /** @param {Trace} trace */
    add(trace) {
      for (const [place, reached] of trace) {
        const before = known.get(place);
        if (before === undefined) known.set(place, reached);
        else reached.forEach((bit, index) => (before[index] |= bit));
      }
    },

    /** How many functions were entered, and how many of their characters were executed. */
    summary() {
      const all = [...known.values()];
      const characters = all.reduce((sum, { length }) => sum + length, 0);
      const reached = all.reduce((sum, bits) => sum + bits.reduce((count, bit) => count + bit, 0), 0);
      return { functions: all.length, characters, reached };
    },

    stop() {
      session.disconnect();
    },
  };

  function post(method, parameters) {
    let result;
    session.post(method, parameters, (error, answer) => {
      if (error !== null) throw new Error(`${method}: ${error.message}`);
      result = answer;
    });
    return result;
  }
}

// The first range is the whole function; those inside it follow the ones around them and overrule these.
function addFunction(trace, url, ranges) {
  const [{ startOffset: start, endOffset: end, count }] = ranges;
  if (count === 0) return;
  const place = `${url}:${start}-${end}`;
  const reached = new Uint8Array(end - start).fill(1);
  for (const range of ranges) {
    reached.fill(range.count === 0 ? 0 : 1, range.startOffset - start, range.endOffset - start);
  }
  trace.set(place, reached);
}

/**
 * Whether a trace reaches all that `wanted` does.
 * @param {Trace} trace
 * @param {Trace} wanted
 */
export function reaches(trace, wanted) {
  for (const [place, bits] of wanted) {
    const reached = trace.get(place);
    if (reached === undefined || bits.some((bit, index) => bit === 1 && reached[index] === 0)) return false;
  }
  return true;
}
