import { docsOf } from "../docs.ts";
import { isError } from "../errors.ts";
import { isGuardError } from "../guard-error.ts";
import { createRequestFact, type RequestFact } from "../request-fact.ts";
import { quoteForLog } from "../wire-text.ts";
import { LineLimit } from "./line-limit.ts";

const maxCauses = 3;
const maxTextLength = 300;
const plainName = /^[\w$.-]{1,64}$/;

/** A line: `<guard> <what> <code>: <message>: <error>; <known>; see <page of the code>`. */
export interface StderrLine {
  readonly guard: string;
  readonly what?: string | undefined;
  readonly code: string;
  readonly message?: string | undefined;
  readonly error: unknown;
  readonly known?: string | undefined;
}

/**
 * Writes one line on stderr: at most ten a minute for each code, then one that counts the rest. COUNTERSIGN_STDERR=off
 * silences it. Never throws: the answer must not depend on a log.
 */
export function writeStderrLine(line: StderrLine): void {
  const code = nameOr(line.code, "unknown-code");
  if (isSwitchedOff() || !limit.admits(code)) return;
  const head = [nameOr(line.guard, "a guard"), line.what, code]
    .filter((part) => part !== undefined)
    .join(" ");
  const message = line.message === undefined ? undefined : quoteForLog(line.message, maxTextLength);
  const error = line.error === undefined ? undefined : describe(line.error, line.guard);
  const docs = docsOf(code);
  const see = docs === undefined ? "" : `; see ${docs}`;
  const known = line.known === undefined ? "" : `; ${line.known}`;
  print([head, message, error].filter((part) => part !== undefined).join(": ") + known + see);
}

// Read at each line, so that an app can set it too. Other values leave the lines on: a misspelt switch must not hide refusals.
function isSwitchedOff(): boolean {
  return process.env["COUNTERSIGN_STDERR"] === "off";
}

// console, not the stream: an error of the stream, such as a closed pipe, would end the process.
function print(text: string): void {
  try {
    // oxlint-disable-next-line no-console -- where nobody subscribes this is the only trace
    console.error(`countersign: ${text}`);
  } catch {
    // The app has replaced console.
  }
}

const limit = new LineLimit(10, (text) => {
  if (!isSwitchedOff()) print(text);
});

function describe(error: unknown, guard: string): string {
  try {
    return describeCauses(error, guard);
  } catch {
    return "an error that cannot be read";
  }
}

function describeCauses(error: unknown, guard: string): string {
  const parts: string[] = [];
  let current = error;
  let earlier = "";
  for (let depth = 0; depth <= maxCauses && current !== undefined && current !== null; depth += 1) {
    if (!isError(current)) return [...parts, "a value that is no Error"].join(", caused by ");
    const { message } = current;
    // A refusal often repeats what its cause says.
    if (message === "" || !earlier.includes(message)) parts.push(describeOne(current, guard));
    earlier = message;
    current = current.cause;
  }
  return parts.join(", caused by ");
}

/** Drivers put the address that they called into messages, sometimes with its password. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/\/\/[^\s/]*@/g, "//...@");
}

function describeOne(error: Error & { readonly code?: unknown }, guard: string): string {
  const message = inOneLine(withoutCredentials(error.message));
  // The line begins with the guard.
  const said = message.startsWith(`${guard}: `) ? message.slice(guard.length + 2) : message;
  const text = quoteForLog(said, maxTextLength);
  if (isGuardError(error)) return text;
  // A connection that failed on every address has a code and no message.
  const code = typeof error.code === "string" ? ` ${nameOr(error.code, "")}` : "";
  return `${nameOr(error.name, "Error")}${code} ${text}`;
}

/** Some libraries lay their messages out in lines. */
function inOneLine(text: string): string {
  return text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" ");
}

/** `text` if it is a plain name, else `otherwise`: a caller could forge or flood a line with it. */
export function nameOr(text: unknown, otherwise: string): string {
  return typeof text === "string" && plainName.test(text) ? text : otherwise;
}

const reported: RequestFact<true> = createRequestFact();

/** True if an `onReject` got the refusal: no line on stderr then. */
export function wasReported(req: object): boolean {
  return reported.get(req) === true;
}

/** Calls `onReject` with a refusal, which then needs no line on stderr. Its throw or rejection becomes a process warning. */
export function reportReject<Native extends object>(
  factoryName: string,
  onReject: (error: unknown, req: Native) => unknown,
  error: unknown,
  req: Native,
): void {
  reported.set(req, true);
  void callOnReject(factoryName, () => onReject(error, req));
}

// An async callback that rejects must not end the process as an unhandled rejection.
async function callOnReject(factoryName: string, call: () => unknown): Promise<void> {
  try {
    await call();
  } catch (thrown) {
    warnOfError(factoryName, "caught what onReject threw", thrown);
  }
}

/** Emits a process warning about an error that is reported nowhere else. */
export function warnOfError(factoryName: string, what: string, error: unknown): void {
  const isOne = isError(error);
  // The message may quote the request: escaped. The stack repeats it before its frames.
  const text = isOne ? `${error.name}: ${quoteForLog(error.message, 200)}` : "a value that is no Error";
  const frames = isOne ? framesOf(error) : "";
  process.emitWarning(`${factoryName} ${what}: ${text}`, frames === "" ? {} : { detail: frames });
}

function framesOf(error: Error): string {
  const { stack = "", message } = error;
  const at = stack.indexOf(message);
  return at < 0 ? "" : stack.slice(at + message.length).trimStart();
}
