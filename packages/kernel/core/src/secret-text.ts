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

/** As {@link secretFault}, for the user name of basic authentication, which ends at the first colon. */
export function userNameFault(text: string): string | undefined {
  return secretFault(text) ?? (text.includes(":") ? "holds a colon (RFC 7617 section 2)" : undefined);
}

/** Returns the given secret or password. Throws an OptionError, which holds nothing of it, if {@link secretFault} has a reason. */
export function readSecretText(given: unknown, owner: OptionOwner, name: string): string {
  return readFaultless(given, secretFault, { owner, name });
}

/** Returns the given user name. Throws an OptionError, which holds nothing of it, if {@link userNameFault} has a reason. */
export function readUserName(given: unknown, owner: OptionOwner, name: string): string {
  return readFaultless(given, userNameFault, { owner, name });
}

/** Returns a copy of a list of secrets. Throws an OptionError for another value, and as {@link readSecretText} does. */
export function readSecretTexts(given: unknown, owner: OptionOwner, name: string): readonly string[] {
  if (!Array.isArray(given)) throw optionError(owner, name, "a list of secrets", given);
  return Array.from(given, (secret: unknown, at) => readSecretText(secret, owner, `${name}[${at}]`));
}

function readFaultless(
  given: unknown,
  faultOf: (text: string) => string | undefined,
  { owner, name }: { readonly owner: OptionOwner; readonly name: string },
): string {
  const expected = "a non-empty string without control characters";
  if (typeof given !== "string" || given === "") throw optionError(owner, name, expected, given);
  const fault = faultOf(given);
  if (fault === undefined) return given;
  throw new OptionError(owner, { option: name, what: `must be ${expected}, got one that ${fault}` });
}
