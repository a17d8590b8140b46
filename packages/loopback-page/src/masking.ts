/** Gives a copy of a value without secrets. */
export type Masker = <T>(value: T) => T;

/** What stands in the place of a secret. */
export const masked = "[masked]";

/** What nobody may see. */
export interface Secrets {
  readonly texts?: readonly string[] | undefined;
  /** Of RFC 7617: the password, and both parts as they are sent. */
  readonly credentials?: readonly { readonly username: string; readonly password: string }[] | undefined;
}

// A shorter one keeps nothing secret, and would be found in every second word.
const shortestSecret = 4;

/**
 * Replaces every secret in the texts of a value, in the forms in which a peer can have sent it back: as it is, hex, base64, also as
 * a part of something longer, percent-encoded, in JSON, and as the credentials of RFC 7617.
 */
export function maskerOf({ texts = [], credentials = [] }: Secrets): Masker {
  const secrets = [
    ...credentials.map(({ username, password }) => base64Of(`${username}:${password}`)),
    ...[...texts, ...credentials.map(({ password }) => password)]
      .filter((text) => text.length >= shortestSecret)
      .flatMap(formsOf),
  ];
  if (secrets.length === 0) return (value) => value;
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  const byLength = [...new Set(secrets)].sort((one, other) => other.length - one.length);
  const pattern = new RegExp(byLength.map((text) => text.replaceAll(/\W/g, String.raw`\$&`)).join("|"), "g");
  const mask = (_name: string, value: unknown): unknown =>
    typeof value === "string" ? value.replaceAll(pattern, masked) : value;
  // What leaves is JSON anyway.
  return (value) => JSON.parse(JSON.stringify(value), mask);
}

function base64Of(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

function formsOf(text: string): readonly string[] {
  const base64 = base64Of(text);
  const percent = encodeURIComponent(text);
  const inner = [0, 1, 2].map((place) => base64Within(text, place));
  const base64s = [base64, base64.replace(/=+$/, ""), ...inner];
  return [
    text,
    JSON.stringify(text).slice(1, -1),
    // The bytes of UTF-8 where a reader took each for a character.
    Buffer.from(text, "utf8").toString("latin1"),
    Buffer.from(text, "utf8").toString("hex"),
    percent,
    percent.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase()),
    percent.replaceAll("%20", "+"),
    ...base64s,
    ...base64s.map((form) => form.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}

/** What is always there of a text in the base64 of something that has it at byte 3n + `place`. */
function base64Within(text: string, place: number): string {
  const bytes = Buffer.concat([Buffer.alloc(place), Buffer.from(text, "utf8")]);
  return bytes.toString("base64").slice(Math.ceil((place * 8) / 6), Math.floor((bytes.length * 8) / 6));
}
