import { ChildProcess } from "node:child_process";
import { Console } from "node:console";
import process from "node:process";
import { notTested } from "../servers/server-binaries.mjs";

const help = `A test run prints nothing but its result: a warning or a line is either the subject of a test, or a fault.
If it is the subject, expect it in this test (each call expects one, or as many as its second argument says):
  import { expectWarning } from "@countersign/test-support/runs/expect-warning.ts";
  expectWarning(/a part of its text/);
If it is not, remove its cause: wait for what still runs, close what is still open, give the option that it asks for.`;

/** The key under which the global object of a test file holds its {@link Written}. test/support/runs/expect-warning.ts reads it. */
export const writtenKey = Symbol.for("countersign.test.written");

/** The {@link Written} of the file that this process runs; undefined between two files. */
let current;

/** What the tests of one file have written and expected: process warnings, and lines of console, stdout and stderr, also of child processes. */
export class Written {
  #written = [];
  #expected = [];

  constructor() {
    current = this;
  }

  /** Called with each reason for which tests are left out. */
  leaveOut = () => {};

  /** Records one warning, or the lines of a text. */
  note(kind, text, stack) {
    const frame = firstFrame(stack);
    for (const line of text.split("\n"))
      if (line.trim() !== "") this.#written.push({ kind, text: line, frame });
  }

  /** `times` is Infinity for one or more, undefined for any number. */
  expect(pattern, times) {
    this.#expected.push({ pattern, times });
  }

  /** Returns a function that forgets all that was written and expected after this call. */
  mark() {
    const [written, expected] = [this.#written.length, this.#expected.length];
    return () => {
      this.#written.length = Math.min(this.#written.length, written);
      this.#expected.length = Math.min(this.#expected.length, expected);
    };
  }

  /** Returns what was written without being expected, or was expected and not written, as an Error; undefined if both agree. Forgets both. */
  settle(where) {
    const expected = this.#expected.map((each) => ({ ...each, seen: 0 }));
    const unexpected = [];
    for (const each of this.#written) {
      const fits = expected.filter(({ pattern }) => pattern.test(each.text));
      const found = fits.find(({ seen, times }) => times === undefined || seen < times) ?? fits[0];
      if (found === undefined) unexpected.push(each);
      else found.seen += 1;
    }
    const missed = expected.filter(({ seen, times }) =>
      times === Infinity ? seen === 0 : times !== undefined && seen !== times,
    );
    this.#written = [];
    this.#expected = [];
    if (unexpected.length === 0 && missed.length === 0) return undefined;
    const problems = [
      ...describeUnexpected(where, unexpected),
      ...missed.map((each) => describeMissed(where, each)),
    ];
    return errorAt(unexpected.find(({ frame }) => frame !== "")?.frame, [...problems, help].join("\n"));
  }

  /** Called when the file has ended. */
  end() {
    if (current === this) current = undefined;
  }
}

function describeUnexpected(where, unexpected) {
  if (unexpected.length === 0) return [];
  const shown = unexpected.slice(0, 20).map(({ kind, text }) => `  ${kind}: ${text}`);
  const rest = unexpected.length > 20 ? [`  and ${unexpected.length - 20} more`] : [];
  return [`${where} writes what it does not expect:`, ...shown, ...rest, ""];
}

function describeMissed(where, { pattern, times, seen }) {
  const count = times === Infinity ? "one or more warnings" : `${times} warning${times === 1 ? "" : "s"}`;
  return `${where} expects ${count} like ${pattern}, but there ${seen === 1 ? "was" : "were"} ${seen}.\n`;
}

/** An error whose place is where the first unexpected line was written, if that is known. */
function errorAt(frame = "", message) {
  const error = new Error(message);
  // A frame is what jest finds the end of the message by.
  error.stack = `Error: ${message}\n${frame || "    at the test file:0:0"}`;
  return error;
}

/** The first frame in a file of the project, as far as there is one. */
function firstFrame(stack = "") {
  const frame = stack
    .split("\n")
    .find(
      (line) =>
        /^\s+at .*\/(?:packages|examples|test)\//.test(line) &&
        !/node_modules|support\/runs\/written/.test(line),
    );
  return frame ?? "";
}

/** Gives the global object of a test file streams and a console whose output `written` records. */
export function recordOutput(global, { written, isVerbose }) {
  const streams = Object.fromEntries(
    ["stdout", "stderr"].map((name) => [name, recordingStream(process[name], name, written)]),
  );
  for (const [name, stream] of Object.entries(streams)) {
    Object.defineProperty(global.process, name, { configurable: true, enumerable: true, get: () => stream });
  }
  // What jest's own console gets, its reporters get with the result of the file, but in a verbose run.
  const reported = global.console;
  written.leaveOut = (reason) => {
    if (isVerbose) process.stderr.write(notTested([reason]));
    else reported.warn(reason);
  };
  global.console = new Console(streams);
  // Another file may run when one of this warns: what this file's own code warns of is this file's.
  global.process.emitWarning = (warning, type, code) => {
    const given = typeof type === "object" && type !== null ? type : { type, code };
    const isError = typeof warning === "object" && warning !== null;
    const name = isError ? warning.name : (given.type ?? "Warning");
    const text = isError ? warning.message : warning;
    noteWarning(written, {
      name,
      code: (isError ? warning.code : undefined) ?? given.code,
      message: text,
      stack: new Error().stack,
    });
  };
  global[writtenKey] = written;
}

function noteWarning(written, { name, code, message, stack }) {
  const head = code === undefined ? "" : `[${code}] `;
  written.note("warning", `${head}${name}: ${message.replaceAll(/\s*\n\s*/g, " ")}`, stack);
}

function recordingStream(stream, name, written) {
  const recording = Object.create(stream);
  recording.write = (chunk, encoding, callback) => {
    written.note(
      name,
      Buffer.from(chunk, typeof encoding === "string" ? encoding : "utf8").toString(),
      new Error().stack,
    );
    const done = typeof encoding === "function" ? encoding : callback;
    if (done !== undefined) process.nextTick(done);
    return true;
  };
  return recording;
}

// Node's own modules warn by the process itself, whose object is not that of the test file.
const printers = process.listeners("warning");
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (warning.name === "ExperimentalWarning") return;
  if (current === undefined) for (const print of printers) print.call(process, warning);
  else noteWarning(current, warning);
});

// A child process that would write to the terminal writes to the record instead.
const spawn = ChildProcess.prototype.spawn;
ChildProcess.prototype.spawn = function recorded(options) {
  const written = current;
  const given = typeof options.stdio === "string" ? Array(3).fill(options.stdio) : [...(options.stdio ?? [])];
  const indexes = written === undefined ? [] : [1, 2].filter((index) => isTerminal(given[index], index));
  for (const index of indexes) given[index] = "pipe";
  const result = spawn.call(this, indexes.length === 0 ? options : { ...options, stdio: given });
  for (const index of indexes) recordLines(this, index, written);
  return result;
};

function isTerminal(target, index) {
  return target === "inherit" || target === index || target === process.stdout || target === process.stderr;
}

function recordLines(child, index, written) {
  const name = ["stdin", "stdout", "stderr"][index];
  const stream = child.stdio?.[index];
  if (!stream) return;
  let rest = "";
  stream.on("data", (chunk) => {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop();
    for (const line of lines) written.note(`${name} of a child process`, line);
  });
  stream.on("end", () => written.note(`${name} of a child process`, rest));
  // A process that is not waited for keeps nothing alive by what it might write.
  stream.unref();
  child[name] = null;
}
