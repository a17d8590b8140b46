import { isGuardError } from "@countersign/core";
import { isError, withoutCredentials } from "@countersign/core/internal";
import { marginBytes, type Masker } from "../loopback/masking.ts";

/** What a handler, `pay` or a check's own function threw. */
export interface RecordedError {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Who reported it: a check, or `handler`. */
  readonly from: string;
  /** The error, then its causes. Longer than shown, see {@link shownErrors}. */
  readonly chain: readonly ErrorText[];
}

interface ErrorText {
  readonly name: string;
  readonly code: string | undefined;
  readonly message: string;
  /** Its frames, without the message. */
  readonly stack: string;
}

const maxChain = 5;
const maxName = 100;
const maxMessage = 2_000;
const maxStack = 8_000;

/** Whether it is no refusal of the request: one of ours is told where something else has caused it. */
export function isTold(error: unknown): boolean {
  if (!isGuardError(error)) return error !== undefined;
  return error.status >= 500 && error.cause !== undefined;
}

/** Never throws: an error may have getters that do. */
export function recordError(at: number, from: string, error: unknown): RecordedError {
  const chain: ErrorText[] = [];
  let current = error;
  while (chain.length < maxChain && (chain.length === 0 || (current !== undefined && current !== null))) {
    chain.push(textsOf(current));
    current = isError(current) ? memberOf(current, "cause") : undefined;
  }
  return { at, from, chain };
}

function textsOf(error: unknown): ErrorText {
  if (!isError(error)) {
    const kind = error === null ? "null" : typeof error;
    const message = typeof error === "string" ? bounded(error, maxMessage) : "";
    return { name: `no Error, but ${kind}`, code: undefined, message, stack: "" };
  }
  const text = (name: string): string => {
    const value = memberOf(error, name);
    return typeof value === "string" ? value : "";
  };
  const [message, stack, code] = [text("message"), text("stack"), text("code")];
  const at = stack.indexOf(message);
  const frames = at === -1 ? stack : stack.slice(at + message.length);
  return {
    name: text("name").slice(0, maxName),
    code: code === "" ? undefined : code.slice(0, maxName),
    message: bounded(message, maxMessage),
    stack: bounded(frames.replace(/^\s+/, ""), maxStack),
  };
}

function memberOf(error: Error, name: string): unknown {
  try {
    return Reflect.get(error, name);
  } catch {
    return undefined;
  }
}

function bounded(text: string, most: number): string {
  return withoutCredentials(text.slice(0, most + marginBytes));
}

/** Masked, then cut. */
export function shownErrors(errors: readonly RecordedError[], mask: Masker): readonly RecordedError[] {
  return errors.map(({ at, from, chain }) => ({
    at,
    from,
    chain: chain.map(({ name, code, message, stack }) => ({
      name,
      code,
      message: mask(message).slice(0, maxMessage),
      stack: mask(stack).slice(0, maxStack),
    })),
  }));
}
