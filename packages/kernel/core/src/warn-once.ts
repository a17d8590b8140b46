import { publishNotice } from "./diagnostics.ts";

/** What {@link WarnOnce} says; without any text from the wire. */
interface Warning {
  readonly code: string;
  readonly message: string;
  /** Undefined for what is known without a request. */
  readonly req?: object | undefined;
}

/** Gives each code out once: as a notice on `countersign:notice` and as a process warning. */
export interface WarnOnce {
  (warning: Warning): void;
  /** Whether the code was given out before. */
  has(code: string): boolean;
}

/** One memory of warnings, for one middleware. It is bounded by the number of codes, so that no caller floods a log. */
export function createWarnOnce(guard: string): WarnOnce {
  const given = new Set<string>();
  const warnOnce = ({ code, message, req }: Warning): void => {
    if (given.has(code)) return;
    given.add(code);
    publishNotice({ guard, code, message, req });
    process.emitWarning(`${guard}: ${message}`, { code });
  };
  return Object.assign(warnOnce, { has: (code: string): boolean => given.has(code) });
}
