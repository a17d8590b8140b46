import { maskerOf, type Masker } from "../loopback/masking.ts";
import type { RecordedRequest } from "./recorded-request.ts";
import type { ResolvedInspectorOptions } from "./options.ts";

export const notShown = "(not shown)";

export function isCredentialName(name: string): boolean {
  return /authorization|cookie|api[-_]?key|token|secret|passw|credential|session/i.test(name);
}

export function linesOf(rawHeaders: readonly string[]): readonly (readonly [name: string, value: string])[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => {
    const [name = "", value = ""] = rawHeaders.slice(index * 2, index * 2 + 2);
    return [name, value];
  });
}

export function maskerOfOptions({ hmac, basicAuth, secrets }: ResolvedInspectorOptions): Masker {
  const hmacSecrets = hmac?.secrets ?? [];
  return maskerOf({
    texts: [...secrets, ...hmacSecrets.flatMap(formsOfHmacSecret)],
    credentials: basicAuth ?? [],
  });
}

// The prefix of Standard Webhooks is often left out; base64 follows it.
function formsOfHmacSecret(secret: string): readonly string[] {
  const rest = /^whsec_(.+)$/s.exec(secret)?.[1];
  return rest === undefined ? [secret] : [secret, rest, Buffer.from(rest, "base64").toString("latin1")];
}

/** A request's credentials may occur again in its body or in a base. */
export function maskerOfRequest({
  rawHeaders,
  target,
}: Pick<RecordedRequest, "rawHeaders" | "target">): Masker {
  const texts = new Set<string>();
  for (const [name, value] of linesOf(rawHeaders)) {
    if (isCredentialName(name)) for (const text of partsOf(value)) texts.add(text);
  }
  const query = target.indexOf("?");
  for (const [name, value] of new URLSearchParams(query === -1 ? "" : target.slice(query))) {
    if (isCredentialName(name)) texts.add(value);
  }
  return maskerOf({ texts: [...texts].filter((text) => text.length >= shortestPart) });
}

// A part of a cookie such as "true" is in every second body.
const shortestPart = 6;
const maxParts = 50;

/** Parts may occur alone elsewhere. */
function partsOf(value: string): readonly string[] {
  const words = value.split(/[;,\s]+/).slice(0, maxParts);
  const behindName = words.map((word) => word.slice(word.indexOf("=") + 1));
  const basic = /^basic\s+([\w+/=-]+)$/i.exec(value)?.[1] ?? "";
  const userPass = Buffer.from(basic, "base64").toString("utf8");
  return [value, ...words, ...behindName, userPass, userPass.slice(userPass.indexOf(":") + 1)];
}
