import { types } from "node:util";
import { noteReported } from "./diagnostics.ts";
import { quoteForLog } from "./wire-text.ts";

/**
 * Calls `onReject` with a refusal, which then needs no line on stderr. Nobody waits for it; its throw or rejection becomes a process
 * warning of `factoryName`.
 */
export function reportReject<Native extends object>(
  factoryName: string,
  onReject: (error: unknown, req: Native) => unknown,
  error: unknown,
  req: Native,
): void {
  noteReported(req);
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
  const isError = types.isNativeError(error);
  // The message can quote the request, so it is escaped; the stack repeats it in front of its frames.
  const text = isError ? `${error.name}: ${quoteForLog(error.message, 200)}` : "a value that is no Error";
  const frames = isError ? framesOf(error) : "";
  process.emitWarning(`${factoryName} ${what}: ${text}`, frames === "" ? {} : { detail: frames });
}

function framesOf(error: Error): string {
  const { stack = "", message } = error;
  const at = stack.indexOf(message);
  return at < 0 ? "" : stack.slice(at + message.length).trimStart();
}
