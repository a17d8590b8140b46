import { utf8Of, viewsOf, type Mark, type View } from "./encoded-views.ts";
import { isPrivateMember, markPrivateKeys } from "./private-keys.ts";

export type Masker = <T>(value: T) => T;

const masked = "[masked]";

/** Mask this much more of a text than you show, then cut: a secret across the end is found whole. */
export const marginBytes = 4096;

export interface Secrets {
  readonly texts?: readonly string[] | undefined;
  /** RFC 7617: the password, and both parts joined. */
  readonly credentials?: readonly { readonly username: string; readonly password: string }[] | undefined;
}

// A shorter one would be found in ordinary words.
const shortestSecret = 4;

/** How secrets are left out of what a page shows. */
export const masking = { of: maskerOf, text: masked, marginBytes };

/**
 * Replaces every secret in the texts and member names of a value. Found also inside a longer text, JSON escapes, percent-encoding, hex, base64
 * and base64url, up to four nested. Also masks every private key, known or not: in armour, as a JWK, as DER. A text with more nested encodings is masked as
 * a whole, so the time is linear in its length.
 */
export function maskerOf({ texts = [], credentials = [] }: Secrets): Masker {
  const known = [
    ...texts,
    ...credentials.flatMap(({ username, password }) =>
      password === "" ? [] : [password, `${username}:${password}`],
    ),
  ];
  const secrets = known.filter((text) => text.length >= shortestSecret);
  const byteStrings = [...new Set(secrets)].flatMap(bytesOf);
  // Answers are JSON anyway.
  return (value) => maskedValue(JSON.parse(JSON.stringify(value)), (text) => maskedText(text, byteStrings));
}

/** As UTF-8, as the bytes of latin1 that btoa() takes, and as the UTF-16 of Windows. */
function bytesOf(text: string): readonly string[] {
  const isLatin1 = /^[\0-\u00ff]*$/.test(text);
  return [utf8Of(text), ...(isLatin1 ? [text] : []), Buffer.from(text, "utf16le").toString("latin1")];
}

function maskedValue<T>(value: T, mask: (text: string) => string): T;
function maskedValue(value: unknown, mask: (text: string) => string): unknown {
  if (typeof value === "string") return mask(value);
  if (Array.isArray(value)) return value.map((each) => maskedValue(each, mask));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    mask(name),
    typeof member === "string" && isPrivateMember(name, member) ? masked : maskedValue(member, mask),
  ]);
  return Object.fromEntries(members);
}

// Nested encodings take about 30 bytes a unit; a hostile text gets no more than this.
const mostBytesOfUnit = 64;
const mostBytes = 65_536;

function maskedText(text: string, secrets: readonly string[]): string {
  if (text.length < shortestSecret) return text;
  // By unit: marks that begin minus marks that end.
  const changes = new Int32Array(text.length + 1);
  let isMarked = false;
  const mark = (start: number, end: number): void => {
    changes[start] = (changes[start] ?? 0) + 1;
    changes[end] = (changes[end] ?? 0) - 1;
    isMarked = true;
  };
  let left = mostBytes + mostBytesOfUnit * text.length;
  for (const view of viewsOf(text)) {
    left -= view.bytes.length;
    if (left < 0) return masked;
    markSecrets(view, secrets, mark);
    markPrivateKeys(view, mark);
  }
  return isMarked ? withoutMarked(text, changes) : text;
}

function markSecrets({ bytes, starts, ends }: View, secrets: readonly string[], mark: Mark): void {
  for (const secret of secrets) {
    for (let at = bytes.indexOf(secret); at !== -1; at = bytes.indexOf(secret, at + 1)) {
      const [start = -1, end = -1] = [starts[at], ends[at + secret.length - 1]];
      if (start >= 0 && end >= 0) mark(start, end);
    }
  }
}

function withoutMarked(text: string, changes: Int32Array): string {
  const parts: string[] = [];
  let [depth, begun] = [0, 0];
  for (const [index, change] of changes.entries()) {
    if (change === 0) continue;
    if (depth === 0) parts.push(text.slice(begun, index), masked);
    depth += change;
    if (depth === 0) begun = index;
  }
  return parts.join("") + text.slice(begun);
}
