import type { WebhookCredentials } from "./credentials.ts";
import { masked } from "./send-webhook.ts";

/** Gives a copy of a value without secrets. */
export type Masker = <T>(value: T) => T;

// A shorter one keeps nothing secret, and would be found in every second word.
const shortestSecret = 4;

/**
 * Replaces every password and secret in the texts of a value, in the forms in which a receiver can have sent them back: as they
 * are, base64, percent-encoded, in JSON, and as the credentials of RFC 7617.
 */
export function maskerOf(credentials: readonly WebhookCredentials[]): Masker {
  const secrets = credentials.flatMap(({ username, password, secret }) => [
    Buffer.from(`${username}:${password}`, "utf8").toString("base64"),
    ...[password, secret].filter((text) => text.length >= shortestSecret).flatMap(formsOf),
  ]);
  if (secrets.length === 0) return (value) => value;
  // oxlint-disable-next-line unicorn/no-array-sort -- toSorted is newer than the library that the compiler knows
  const byLength = [...new Set(secrets)].sort((one, other) => other.length - one.length);
  const pattern = new RegExp(byLength.map((text) => text.replaceAll(/\W/g, String.raw`\$&`)).join("|"), "g");
  const mask = (_name: string, value: unknown): unknown =>
    typeof value === "string" ? value.replaceAll(pattern, masked) : value;
  // What leaves is JSON anyway.
  return (value) => JSON.parse(JSON.stringify(value), mask);
}

function formsOf(text: string): readonly string[] {
  const base64 = Buffer.from(text, "utf8").toString("base64");
  const forms = [text, base64, base64.replace(/=+$/, ""), encodeURIComponent(text)];
  return [...forms, JSON.stringify(text).slice(1, -1)];
}
