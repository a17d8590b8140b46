import { quoted, type Remedy } from "./explanation.ts";
import { numberOf, type SignatureContext } from "./signature-context.ts";

const aliases: ReadonlyMap<string, readonly string[]> = new Map([
  ["alg", ["algorithm"]],
  ["keyid", ["kid", "key", "id"]],
  ["expires", ["exp", "expiry"]],
  ["created", ["iat", "createdat", "timestamp", "ts"]],
]);

/** Whether a name is another spelling of one that is due. */
export function isLike(name: string, due: string): boolean {
  const plain = name.toLowerCase().replaceAll(/[^a-z]/g, "");
  return plain === due || aliases.get(due)?.includes(plain) === true;
}

const kinds: Readonly<Record<string, string>> = {
  integer: "a number",
  decimal: "a number with a fraction",
  string: "a text of a length that is not taken",
  token: "without quotes",
  binary: "a byte sequence",
  boolean: "a flag without a value",
};

/** A parameter that is missing, has another name, or another type than this one. */
export function explainParameter({ input }: SignatureContext, name: string, form: string): Remedy {
  const item = input?.parameters.get(name);
  if (item !== undefined) {
    const kind = kinds[item.type] ?? "of another type";
    return [`${name}-form`, `Send ${name} in Signature-Input as ${form}: it is ${kind}.`];
  }
  const like = [...(input?.parameters.keys() ?? [])].find((each) => each !== name && isLike(each, name));
  return like === undefined
    ? [`${name}-missing`, `Send ${name} in Signature-Input as ${form}: it is missing.`]
    : [
        `${name}-other-name`,
        `Call the parameter ${name} in Signature-Input by that name: it is there as ${quoted(like)}.`,
      ];
}

function explainSeconds(context: SignatureContext, name: string): Remedy {
  const item = context.input?.parameters.get(name);
  if (item === undefined) return explainParameter(context, name, "Unix seconds, a whole number");
  const kind = item.type === "string" ? "in quotes" : (kinds[item.type] ?? "of another type");
  return [
    `${name}-form`,
    `Send ${name} in Signature-Input as Unix seconds, a whole number without quotes: it is ${kind}.`,
  ];
}

// Ten digits until the year 2286; thirteen are milliseconds.
const fromMilliseconds = 100_000_000_000;

function inMilliseconds(name: string, value: number | undefined): Remedy | undefined {
  if (value === undefined || value <= fromMilliseconds) return undefined;
  const seconds = Math.floor(value / 1000);
  return [
    `${name}-milliseconds`,
    `Send ${name} in Signature-Input in seconds: ${value} are milliseconds, write ${seconds}.`,
  ];
}

function nowOf({ check }: SignatureContext): number {
  return Math.floor((check.clock?.() ?? Date.now()) / 1000);
}

/** By whole quarters of an hour it is a time zone, else a clock. */
function timeZone(aheadSeconds: number): Remedy | undefined {
  const quarters = Math.round(aheadSeconds / 900);
  const isZone = Math.abs(quarters) >= 2 && Math.abs(quarters) <= 56;
  if (!isZone || Math.abs(aheadSeconds - quarters * 900) > 30) return undefined;
  const hours = `${Math.abs(quarters) / 4} hours ${aheadSeconds > 0 ? "ahead of" : "behind"}`;
  return [
    "created-time-zone",
    `Send created in Signature-Input as Unix seconds in UTC: it is ${hours} the verifier's clock, as a local time would be.`,
  ];
}

/** The refusals of the times of a signature, by their codes. */
export const timeFaults: Readonly<Record<string, (context: SignatureContext) => Remedy>> = {
  "created-invalid": (context) => explainSeconds(context, "created"),
  "expires-invalid": (context) => {
    const created = numberOf(context.input, "created");
    const expires = numberOf(context.input, "expires");
    if (created === undefined || expires === undefined) return explainSeconds(context, "expires");
    return (
      inMilliseconds("created", created) ??
      (expires < 100_000
        ? [
            "expires-duration",
            `Send expires in Signature-Input as a point in time, created + ${expires} = ${created + expires}: it is a duration.`,
          ]
        : ["expires-not-later", "Send an expires in Signature-Input that is later than created."])
    );
  },
  "created-in-future": (context) => {
    const created = numberOf(context.input, "created") ?? 0;
    const ahead = created - nowOf(context);
    const clock = `Set the signer's clock: created in Signature-Input is ${ahead} s ahead of the verifier's clock.`;
    return inMilliseconds("created", created) ?? timeZone(ahead) ?? ["created-in-future", clock];
  },
  "signature-expired": (context) => {
    const created = numberOf(context.input, "created");
    const end = numberOf(context.input, "expires") ?? (created ?? 0) + (context.check.windowSeconds ?? 60);
    const now = nowOf(context);
    return (
      timeZone((created ?? end) - now) ?? [
        "signature-expired",
        `Sign each request anew right before it is sent, also when it is sent again: the signature expired ${now - end} s ago by the verifier's clock.`,
      ]
    );
  },
  "window-too-long": (context) => {
    const created = numberOf(context.input, "created") ?? 0;
    const expires = numberOf(context.input, "expires") ?? 0;
    const window = context.check.windowSeconds ?? 60;
    return (
      inMilliseconds("created", created) ??
      inMilliseconds("expires", expires) ?? [
        "window-too-long",
        `Send an expires in Signature-Input at most ${window} s behind created: it is ${expires - created} s behind.`,
      ]
    );
  },
};
