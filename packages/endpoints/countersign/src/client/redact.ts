const placeholder = "[redacted]";

export interface SuspectText {
  readonly text: string;
  /** Whether its end is missing: half a secret may stand there. */
  readonly truncated: boolean;
}

/** Replaces every secret, also as JSON or a URI encodes it. Needs at least one. */
export function redact({ text, truncated }: SuspectText, secrets: readonly string[]): string {
  const spellings = secrets.flatMap(spellingsOf);
  // Longest first: a secret inside another must not leave the other's rest. In one pass: a short one may be part of the placeholder.
  spellings.sort((a, b) => b.length - a.length);
  const pattern = new RegExp(spellings.map(escapeRegExp).join("|"), "g");
  const redacted = text.replace(pattern, placeholder);
  const longest = spellings[0]?.length ?? 0;
  return truncated ? redacted.slice(0, Math.max(0, redacted.length - longest)) : redacted;
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

function spellingsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const asciiJson = json.replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const texts = [secret, json, asciiJson];
  // Some serialisers escape the slash, which base64 holds.
  return [...texts, ...texts.map((text) => text.replaceAll("/", "\\/")), encodeURIComponent(secret)];
}
