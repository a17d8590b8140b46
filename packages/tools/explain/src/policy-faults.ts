import {
  componentText,
  defaultComponents,
  derivedComponents,
  type SignatureInput,
  type VerificationKey,
} from "@countersign/http-message-signatures";
import { rightDraft } from "./draft.ts";
import {
  baseOfMessage,
  numberOf,
  textOf,
  type LabelledSignature,
  type SignatureContext,
} from "./signature-context.ts";
import { explanation, quoted, type Explanation } from "./explanation.ts";
import { miss } from "./near-miss.ts";
import { nearest } from "./nearest.ts";
import { pace } from "./pace.ts";
import { search } from "./search.ts";

/** The refusals that are about the key of a signature. */
export function isKeyCode(code: string): boolean {
  return code === "key-unknown" || code === "alg-mismatch";
}

/** An unknown keyid, or an algorithm that is not the key's: looks which known key has signed. */
export async function explainKey(
  context: SignatureContext,
  { input, signature }: LabelledSignature,
  base: string | undefined,
): Promise<Explanation & { readonly attempts: number }> {
  const { own, code } = context;
  const keys = [...own.keys.values()];
  const [first] = keys;
  if (first === undefined && code === "key-unknown")
    return { ...explainUnknownKey(context, input, undefined), attempts: 0 };
  if (base === undefined || first === undefined) return { ...explainPolicy(context, input), attempts: 0 };
  const right = { ...rightDraft(base, first, signature), signature: new Uint8Array() };
  const misses = keys
    .slice(0, 100)
    .map((key) => miss("key", "key", key.keyid, (draft) => ({ ...draft, key, signature })));
  const { found, attempts } = await search(right, misses, { maxAttempts: own.maxAttempts, pace });
  const signer = own.keys.get(found?.misses[0]?.sentence ?? "");
  const made =
    code === "key-unknown"
      ? explainUnknownKey(context, input, signer)
      : explainAlgorithm(context, input, signer);
  return { ...made, attempts };
}

function explainUnknownKey(
  { own, code }: SignatureContext,
  input: SignatureInput,
  signer: VerificationKey | undefined,
): Explanation {
  const keyid = textOf(input, "keyid") ?? "";
  const known = [...own.keys.keys()];
  const details = [
    known.length === 0
      ? "No other key was tried: the key store lists none."
      : `Known keyids: ${known.slice(0, 20).map(quoted).join(", ")}`,
  ];
  if (signer !== undefined) {
    const sentence = `Send keyid=${quoted(signer.keyid)}: the signature fits that key, and none is known as ${quoted(keyid)}.`;
    return explanation("keyid-other-name", code, sentence, details);
  }
  const near = nearest(keyid, known);
  if (near !== undefined) {
    const sentence = `Send keyid=${quoted(near)}: no key is known as ${quoted(keyid)}.`;
    return explanation("keyid-spelling", code, sentence, details);
  }
  return explanation(
    "key-unknown",
    code,
    `Send a keyid that was handed over, or hand over the public key of ${quoted(keyid)}: no key is known under it, and the signature fits none that is.`,
    details,
  );
}

function explainAlgorithm(
  { own, check, code }: SignatureContext,
  input: SignatureInput,
  signer: VerificationKey | undefined,
): Explanation {
  const received = textOf(input, "alg") ?? "";
  const key = own.keys.get(textOf(input, "keyid") ?? "") ?? signer;
  const taken = check.algorithms ?? ["ed25519"];
  const wanted = key?.alg ?? taken[0] ?? "ed25519";
  if (key !== undefined && !taken.includes(key.alg)) {
    return explanation(
      "alg-not-taken",
      code,
      `Sign with a key of ${taken.join(" or ")}: the verifier takes no signature by ${key.alg}.`,
    );
  }
  return explanation(
    "alg-other",
    code,
    `Send alg=${quoted(wanted)}, the algorithm of the key: Signature-Input has ${received === "" ? "none" : quoted(received)}.`,
  );
}

type Explain = (context: SignatureContext, input: SignatureInput | undefined) => Explanation;

/** The explanation of a refusal whose code says nearly all. */
export function explainPolicy(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const { code = "" } = context;
  const explain = Object.hasOwn(byCode, code) ? byCode[code] : undefined;
  return (
    explain?.(context, input) ??
    explanation(code, code, `Look up the refusal ${quoted(code)}: no usual mistake of a signer is behind it.`)
  );
}

const byCode: Readonly<Record<string, Explain>> = {
  "alg-invalid": parameterExplainer("alg", 'a text in double quotes, such as alg="ed25519"'),
  "keyid-invalid": parameterExplainer("keyid", "a text in double quotes of 1 to 256 characters"),
  "nonce-invalid": parameterExplainer(
    "nonce",
    "a text in double quotes of 1 to 128 characters, another one each time",
  ),
  "tag-invalid": parameterExplainer("tag", "a text in double quotes"),
  "created-invalid": explainCreated,
  "expires-invalid": explainExpires,
  "created-in-future": explainFuture,
  "signature-expired": explainExpired,
  "window-too-long": explainWindow,
  "component-required": explainRequired,
  "component-name-invalid": explainName,
  "component-unsupported": explainDerived,
  "component-duplicate": named(
    "component-duplicate",
    "Name each component of Signature-Input once",
    repeatedComponent,
  ),
  "components-empty": plain(
    "components-empty",
    ({ check }) =>
      `Cover ${listed(check.requiredComponents ?? defaultComponents)} in Signature-Input: its list is empty.`,
  ),
  "component-parameter-unsupported": named(
    "component-parameter",
    "Name components in Signature-Input without parameters that the message cannot have",
    ({ input }) => input?.components.find(({ parameters }) => parameters.size > 0),
  ),
  "component-forbidden": plain(
    "component-forbidden",
    ({ check }) =>
      `Leave ${listed(check.forbiddenComponents ?? [])} out of Signature-Input: it is not taken.`,
  ),
  "covered-field-missing": named(
    "covered-field-missing",
    "Send every field that Signature-Input names, unchanged by proxies",
    uncomputable,
  ),
  "covered-field-repeated": named(
    "covered-field-repeated",
    "Send each signed field of one value once",
    uncomputable,
  ),
  "covered-field-invalid": named(
    "covered-field-invalid",
    "Sign fields whose values are printable ASCII and well-formed",
    uncomputable,
  ),
  "query-not-covered": plain(
    "query-not-covered",
    () => 'Cover "@query" in Signature-Input, or send the request without a query.',
  ),
  "body-not-covered": plain(
    "body-not-covered",
    () => 'Send Content-Digest and cover "content-digest" in Signature-Input: nothing signs the body.',
  ),
  "method-override": plain(
    "method-override",
    () => "Send the request by its own method, without X-HTTP-Method-Override or its like.",
  ),
  "target-invalid": plain(
    "target-invalid",
    () =>
      "Send the request target as a path and query alone, without a full URL, dot segments, double slashes at its start, # or \\.",
  ),
  "method-invalid": plain("method-invalid", () => "Send a method that is a token, such as POST."),
  "authority-conflict": plain(
    "authority-conflict",
    () => "Send one Host, the same as :authority: the request names its server twice, or two of them.",
  ),
  "key-revoked": keyed("key-revoked", "Sign with a key that is in use: {keyid} is revoked."),
  "key-retired": keyed(
    "key-retired",
    "Sign with a key that is in use: {keyid} was not valid when the signature was created.",
  ),
  "key-scope": keyed("key-scope", "Sign with a key that is for this path and environment: {keyid} is not."),
  "parameter-forbidden": plain(
    "parameter-forbidden",
    ({ check }) => `Leave the parameters ${listed(check.forbiddenParameters ?? [])} out of Signature-Input.`,
  ),
  "signature-ambiguous": plain(
    "signature-ambiguous",
    () =>
      "Send one signature that fits the profile: there are several in Signature-Input, and none is chosen by guess.",
  ),
  "tag-mismatch": (context, input) =>
    explanation(
      "tag-other",
      context.code,
      `Send the tag in Signature-Input that the verifier takes: it has ${quotedOr(textOf(input, "tag"))}.`,
    ),
  "signature-malformed": plain(
    "signature-length",
    () => "Send the 64 bytes of an Ed25519 signature in Signature, in base64: it has another length.",
  ),
};

function plain(what: string, sentence: (context: SignatureContext) => string): Explain {
  return (context) => explanation(what, context.code, sentence(context));
}

function keyed(what: string, sentence: string): Explain {
  return (context, input) =>
    explanation(
      what,
      context.code,
      sentence.replace("{keyid}", () => quotedOr(textOf(input, "keyid"))),
    );
}

interface Looked extends SignatureContext {
  readonly input: SignatureInput | undefined;
}

type Component = SignatureInput["components"][number];

function named(what: string, advice: string, find: (looked: Looked) => Component | undefined): Explain {
  return (context, input) => {
    const component = find({ ...context, input });
    const which = component === undefined ? "." : `: look at ${quoted(componentText(component))}.`;
    return explanation(what, context.code, advice + which);
  };
}

function repeatedComponent({ input }: Looked): Component | undefined {
  const seen = new Set<string>();
  return input?.components.find((component) => {
    const text = componentText(component);
    if (seen.has(text)) return true;
    seen.add(text);
    return false;
  });
}

function uncomputable(looked: Looked): Component | undefined {
  return looked.input?.components.find(
    (component) => baseOfMessage(looked, { components: [component], parameters: new Map() }) === undefined,
  );
}

function listed(components: readonly string[]): string {
  return components.map((component) => quoted(component)).join(", ");
}

function quotedOr(text: string | undefined): string {
  return text === undefined ? "none" : quoted(text);
}

function parameterExplainer(name: string, form: string): Explain {
  return ({ code }, input) => {
    const item = input?.parameters.get(name);
    const sentence = `Send ${name} in Signature-Input as ${form}: it ${item === undefined ? "is missing" : `is ${kindOf(item.type)}`}.`;
    const like = [...(input?.parameters.keys() ?? [])].find((each) => each !== name && isLike(each, name));
    if (item === undefined && like !== undefined) {
      return explanation(
        `${name}-other-name`,
        code,
        `Call the parameter ${name} in Signature-Input by that name: it is there as ${quoted(like)}.`,
      );
    }
    return explanation(`${name}-${item === undefined ? "missing" : "form"}`, code, sentence);
  };
}

function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z]/g, "");
}

function isLike(one: string, other: string): boolean {
  const aliases: Readonly<Record<string, readonly string[]>> = {
    alg: ["algorithm"],
    keyid: ["kid", "key", "id"],
    expires: ["exp", "expiry"],
    created: ["iat", "createdat", "timestamp", "ts"],
  };
  return plainName(one) === other || (aliases[other] ?? []).includes(plainName(one));
}

function kindOf(type: string): string {
  const kinds: Readonly<Record<string, string>> = {
    integer: "a number",
    decimal: "a number with a fraction",
    string: "a text of a length that is not taken",
    token: "without quotes",
    binary: "a byte sequence",
    boolean: "a flag without a value",
  };
  return kinds[type] ?? "of another type";
}

// Ten digits until the year 2286; thirteen are milliseconds.
const fromMilliseconds = 100_000_000_000;

function explainCreated(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const item = input?.parameters.get("created");
  if (item === undefined)
    return parameterExplainer("created", "Unix seconds, a whole number")(context, input);
  return explanation(
    "created-form",
    context.code,
    `Send created in Signature-Input as Unix seconds, a whole number without quotes: it is ${item.type === "string" ? "in quotes" : kindOf(item.type)}.`,
  );
}

function explainExpires(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const { code } = context;
  const item = input?.parameters.get("expires");
  const created = numberOf(input, "created");
  const expires = numberOf(input, "expires");
  if (item === undefined)
    return parameterExplainer("expires", "Unix seconds, a whole number")(context, input);
  if (created === undefined || expires === undefined) {
    return explanation(
      "expires-form",
      code,
      `Send expires in Signature-Input as Unix seconds, a whole number without quotes: it is ${item.type === "string" ? "in quotes" : kindOf(item.type)}.`,
    );
  }
  if (created > fromMilliseconds) {
    return explanation("created-milliseconds", code, millisecondsSentence("created", created));
  }
  return expires < 100_000
    ? explanation(
        "expires-duration",
        code,
        `Send expires in Signature-Input as a point in time, created + ${expires} = ${created + expires}: it is a duration.`,
      )
    : explanation(
        "expires-not-later",
        code,
        "Send an expires in Signature-Input that is later than created.",
      );
}

function millisecondsSentence(name: string, value: number): string {
  return `Send ${name} in Signature-Input in seconds: ${value} are milliseconds, write ${Math.floor(value / 1000)}.`;
}

function nowOf({ check }: SignatureContext): number {
  return Math.floor((check.clock?.() ?? Date.now()) / 1000);
}

function explainFuture(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const created = numberOf(input, "created") ?? 0;
  const { code } = context;
  if (created > fromMilliseconds) {
    return explanation("created-milliseconds", code, millisecondsSentence("created", created));
  }
  return clockExplanation("created-in-future", created - nowOf(context), context);
}

function explainExpired(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const created = numberOf(input, "created");
  const end = numberOf(input, "expires") ?? (created ?? 0) + (context.check.windowSeconds ?? 60);
  const age = nowOf(context) - (created ?? end);
  const zone = clockExplanation("signature-expired", -age, context);
  if (zone.what.endsWith("zone")) return zone;
  return explanation(
    "signature-expired",
    context.code,
    `Sign each request anew right before it is sent, also when it is sent again: the signature expired ${nowOf(context) - end} s ago by the verifier's clock.`,
  );
}

/** By whole quarters of an hour it is a time zone, else a clock. */
function clockExplanation(what: string, aheadSeconds: number, { code }: SignatureContext): Explanation {
  const quarters = Math.round(aheadSeconds / 900);
  const isZone = quarters !== 0 && Math.abs(quarters) <= 56 && Math.abs(aheadSeconds - quarters * 900) <= 30;
  const direction = aheadSeconds > 0 ? "ahead of" : "behind";
  if (isZone && Math.abs(quarters) >= 2) {
    return explanation(
      "created-time-zone",
      code,
      `Send created in Signature-Input as Unix seconds in UTC: it is ${Math.abs(quarters) / 4} hours ${direction} the verifier's clock, as a local time would be.`,
    );
  }
  return explanation(
    what,
    code,
    `Set the signer's clock: created in Signature-Input is ${Math.abs(aheadSeconds)} s ${direction} the verifier's clock.`,
  );
}

function explainWindow(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const created = numberOf(input, "created") ?? 0;
  const expires = numberOf(input, "expires") ?? 0;
  const window = context.check.windowSeconds ?? 60;
  if (expires > fromMilliseconds && created < fromMilliseconds) {
    return explanation("expires-milliseconds", context.code, millisecondsSentence("expires", expires));
  }
  if (created > fromMilliseconds) {
    return explanation("created-milliseconds", context.code, millisecondsSentence("created", created));
  }
  return explanation(
    "window-too-long",
    context.code,
    `Send an expires in Signature-Input at most ${window} s behind created: it is ${expires - created} s behind.`,
  );
}

function explainRequired(context: SignatureContext, input: SignatureInput | undefined): Explanation {
  const required = context.check.requiredComponents ?? defaultComponents;
  const covered = (input?.components ?? []).map(componentText);
  const missing = required.filter((component) => !covered.includes(component));
  const [first = ""] = missing;
  const like = covered.find((component) =>
    isLike(component.replaceAll(/[^a-z]/gi, ""), first.replaceAll(/[^a-z]/g, "")),
  );
  if (like !== undefined) {
    return explanation(
      "component-spelling",
      context.code,
      `Write ${quoted(first)} in Signature-Input where ${quoted(like)} stands.`,
    );
  }
  return explanation(
    "component-required",
    context.code,
    `Cover ${listed(missing)} in Signature-Input: nothing signs it.`,
  );
}

function explainName({ code }: SignatureContext, input: SignatureInput | undefined): Explanation {
  const bad = input?.components.find(({ name }) => !/^[!#$%&'*+\-.^_`|~0-9a-z@]+$/.test(name));
  const name = bad?.name ?? "";
  const sentence =
    name === name.toLowerCase()
      ? `Name fields in Signature-Input by their names alone: ${quoted(name)} is no field name.`
      : `Write ${quoted(name.toLowerCase())} in lower case in Signature-Input: it is there as ${quoted(name)}.`;
  return explanation(
    name === name.toLowerCase() ? "component-name" : "component-letter-case",
    code,
    sentence,
  );
}

const derived: readonly string[] = [...derivedComponents, "@query-param"];

function explainDerived({ code }: SignatureContext, input: SignatureInput | undefined): Explanation {
  const name = input?.components.find(
    (each) => each.name.startsWith("@") && !derived.includes(each.name),
  )?.name;
  if (name === "@signature-params") {
    return explanation(
      "component-signature-params",
      code,
      'Leave "@signature-params" out of the list of Signature-Input: it is signed without being named.',
    );
  }
  if (name === "@status") {
    return explanation(
      "component-of-response",
      code,
      'Leave "@status" out of Signature-Input: a request has none.',
    );
  }
  const near = nearest(name ?? "", derived);
  const advice = near === undefined ? "" : ` Write ${quoted(near)}.`;
  return explanation(
    "component-unknown",
    code,
    name === undefined
      ? 'Give "@query-param" the parameter name in Signature-Input.'
      : `Name components in Signature-Input that RFC 9421 has: ${quoted(name)} is none of them.${advice}`,
  );
}
