import { MessageSignatureError } from "./message-signature-error.ts";

/** The parts of a request target that components are computed from. */
export interface RequestTarget {
  readonly path: string;
  /** With its leading `?`; undefined when the target has none. */
  readonly query: string | undefined;
}

/**
 * Splits an origin-form target and changes nothing. A target that a router and a signer could read as two paths is refused
 * (`target-invalid`): absolute form, `//`, `\`, `#`, dot segments, encoded dots, anything outside visible ASCII.
 */
export function parseRequestTarget(target: string): RequestTarget {
  const queryStart = target.indexOf("?");
  const path = queryStart === -1 ? target : target.slice(0, queryStart);
  if (!visibleAscii.test(target) || !path.startsWith("/") || path.startsWith("//")) {
    throw new MessageSignatureError("target-invalid", "the request target is not in plain origin-form");
  }
  if (ambiguousPath.test(path) || target.includes("#") || target.includes("\\")) {
    throw new MessageSignatureError("target-invalid", "the request target can be read as more than one path");
  }
  return { path, query: queryStart === -1 ? undefined : target.slice(queryStart) };
}

const visibleAscii = /^[\x21-\x7e]+$/;
const ambiguousPath = /\/\.{1,2}(?:\/|$)|%2e/i;
