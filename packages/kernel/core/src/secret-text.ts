import { OptionError, optionError, type OptionOwner } from "./options.ts";

// RFC 7617 section 2 forbids control characters; the parser of basic authentication takes no line terminator of any kind.
const unfit = /[\p{Cc}\p{Surrogate}\u2028\u2029]/u;

/** True if a text that somebody has sent could be a user name or a password: not empty, and without control characters. */
export function isCredentialText(text: string): boolean {
  return text !== "" && !unfit.test(text);
}

/**
 * Says why a text cannot be a secret, such as "ends with a line feed"; undefined if it can. Somebody else computes with the same secret:
 * what a file or an editor adds to it is refused, never taken off. The reason holds nothing of the text.
 */
export function secretFault(text: string): string | undefined {
  if (text.startsWith("\uFEFF")) return "begins with a byte order mark; save its file as UTF-8 without one";
  if (text.trim() === "") return text === "" ? "is empty" : "is blank";
  if (/[\r\n]$/.test(text)) return "ends with a line feed, as the content of a file does; write .trimEnd()";
  return unfit.test(text)
    ? "holds a control character, a line separator or half a surrogate pair"
    : undefined;
}

/** Returns the given secret, password or user name. Throws an OptionError, which holds nothing of it, if {@link secretFault} has a reason. */
export function readSecretText(given: unknown, owner: OptionOwner, name: string): string {
  const expected = "a non-empty string without control characters";
  if (typeof given !== "string" || given === "") throw optionError(owner, name, expected, given);
  const fault = secretFault(given);
  if (fault === undefined) return given;
  throw new OptionError(owner, { option: name, what: `must be ${expected}, got one that ${fault}` });
}
