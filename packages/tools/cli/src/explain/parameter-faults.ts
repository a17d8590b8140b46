import { quoted, type Remedy } from "./explanation.ts";
import { plain } from "./missing-signature.ts";
import { remedy } from "./remedies.ts";
import { numberOf, type SignatureContext } from "./signature-context.ts";

const aliases: Readonly<Record<string, readonly string[]>> = {
  alg: ["algorithm"],
  keyid: ["kid", "key", "id"],
  expires: ["exp", "expiry"],
  created: ["iat", "createdat", "timestamp", "ts"],
};

export function isLike(name: string, due: string): boolean {
  return [due, ...(aliases[due] ?? [])].includes(plain(name));
}

const kinds: Readonly<Record<string, string>> = {
  integer: "a number",
  decimal: "a number with a fraction",
  string: "a text of a length that is not taken",
  token: "without quotes",
  binary: "a byte sequence",
  boolean: "a flag without a value",
};

export function explainParameter({ input }: SignatureContext, name: string, form: string): Remedy {
  const item = input?.parameters.get(name);
  const isDue = `Send ${name} in Signature-Input as ${form}`;
  if (item !== undefined)
    return [`${name}-form`, `${isDue}: it is ${kinds[item.type] ?? "of another type"}.`];
  const like = [...(input?.parameters.keys() ?? [])].find((each) => each !== name && isLike(each, name));
  if (like === undefined) return [`${name}-missing`, `${isDue}: it is missing.`];
  const found = `it is there as ${quoted(like)}`;
  return [`${name}-other-name`, `Call the parameter ${name} in Signature-Input by that name: ${found}.`];
}

function explainSeconds(context: SignatureContext, name: string): Remedy {
  const form = "Unix seconds, a whole number";
  const item = context.input?.parameters.get(name);
  if (item === undefined) return explainParameter(context, name, form);
  if (item.type !== "string") return explainParameter(context, name, `${form} without quotes`);
  return [`${name}-form`, `Send ${name} in Signature-Input as ${form} without quotes: it is in quotes.`];
}

// Ten digits until the year 2286; thirteen are milliseconds.
const fromMilliseconds = 100_000_000_000;

function inMilliseconds({ input }: SignatureContext): Remedy | undefined {
  const found = ["created", "expires"].flatMap((name) => {
    const value = numberOf(input, name) ?? 0;
    return value > fromMilliseconds ? [{ name, value, due: Math.floor(value / 1000) }] : [];
  });
  const [first] = found;
  if (first === undefined) return undefined;
  const list = (part: keyof typeof first): string => found.map((each) => each[part]).join(" and ");
  const sentence = `Send ${list("name")} in Signature-Input in seconds: ${list("value")} are milliseconds, write ${list("due")}.`;
  return [`${first.name}-milliseconds`, sentence];
}

// An offset of whole quarters of an hour is a time zone, any other a wrong clock.
function timeZone(aheadSeconds: number): Remedy | undefined {
  const quarters = Math.round(aheadSeconds / 900);
  const isZone = Math.abs(quarters) >= 2 && Math.abs(quarters) <= 56;
  if (!isZone || Math.abs(aheadSeconds - quarters * 900) > 30) return undefined;
  const hours = `${Math.abs(quarters) / 4} hours ${aheadSeconds > 0 ? "ahead of" : "behind"}`;
  return remedy("created-time-zone", { hours });
}

// A smaller number is no time of this century.
const longestDuration = 100_000;

export const timeFaults: Readonly<Record<string, (context: SignatureContext) => Remedy>> = {
  "created-invalid": (context) => explainSeconds(context, "created"),
  "expires-invalid": (context) => {
    const { created, expires } = timesOf(context);
    if (created === undefined || expires === undefined) return explainSeconds(context, "expires");
    if (created > fromMilliseconds) return inMilliseconds(context) ?? remedy("expires-not-later");
    return expires < longestDuration
      ? remedy("expires-duration", { expires, end: created + expires })
      : remedy("expires-not-later");
  },
  "created-in-future": (context) => {
    const { ahead } = timesOf(context);
    return inMilliseconds(context) ?? timeZone(ahead) ?? remedy("created-in-future", { ahead });
  },
  "signature-expired": (context) => {
    const { created = 0, expires, window, now, ahead } = timesOf(context);
    const late = now - (expires ?? created + window);
    return timeZone(ahead) ?? remedy("signature-expired", { late });
  },
  "window-too-long": (context) => {
    const { created = 0, expires = 0, window } = timesOf(context);
    return inMilliseconds(context) ?? remedy("window-too-long", { window, length: expires - created });
  },
};

function timesOf({ input, check }: SignatureContext) {
  const [created, expires] = [numberOf(input, "created"), numberOf(input, "expires")];
  const now = Math.floor((check.clock?.() ?? Date.now()) / 1000);
  return {
    created,
    expires,
    now,
    ahead: (created ?? expires ?? now) - now,
    window: check.windowSeconds ?? 60,
  };
}
