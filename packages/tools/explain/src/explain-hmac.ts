import {
  fieldLines,
  option,
  optionError,
  splitOptions,
  type HeaderLines,
  type OptionOwner,
  type OptionTable,
} from "@countersign/core/door";
import {
  signatureSchemes,
  verifyPayload,
  type SignatureScheme,
  type VerifyPayloadOptions,
} from "@countersign/webhook-hmac";
import { explanation, quoted, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { explainHmacForm, type HmacContext } from "./hmac-misses.ts";
import { plain } from "./missing-signature.ts";
import { pace } from "./pace.ts";

/** What the HMAC of a webhook is explained by: the secrets, and the options of `verifyPayload`. */
export interface ExplainHmacOptions extends VerifyPayloadOptions {
  /** Each of them is tried; the explanation names them by their position, from 1. */
  readonly secrets: readonly string[];
  /** Take the time of the signature, where the scheme has one, for now: for a capture, which is always late. Default false. */
  readonly atItsTime?: boolean | undefined;
}

/** The rules of the options that verifyPayload has not; the secrets it reads itself. */
export const hmacTable = {
  secrets: option.own(readSecrets),
  atItsTime: option.boolean(false),
} satisfies OptionTable<Pick<ExplainHmacOptions, "atItsTime" | "secrets">, unknown>;

function readSecrets(secrets: unknown, owner: OptionOwner, name: string): readonly string[] {
  if (Array.isArray(secrets) && secrets.every((secret) => typeof secret === "string")) return [...secrets];
  throw optionError(owner, name, "a list of secrets", secrets);
}

/**
 * Says why the HMAC of a webhook does not fit its body, and what has to change. It names the secret that fits by its position: no
 * explanation holds a secret, a computed HMAC, or the received one. At most 32 secrets are tried, 2,000 HMACs and 64 MB. Rejects
 * with a TypeError on a bad option; whatever the request is, it gets an explanation.
 */
export async function explainHmac(
  request: HeaderLines,
  body: Uint8Array,
  options: ExplainHmacOptions,
): Promise<Explanation> {
  const [{ secrets, atItsTime }, given] = splitOptions("explainHmac", hmacTable, options);
  const scheme = schemeOf(given);
  const time = timeOf(request, scheme);
  const isItsTime = atItsTime && scheme.timestamp !== undefined && /^\d{1,12}$/.test(time);
  const read = isItsTime ? { ...given, clock: () => Number(time) * 1000 } : given;
  const code = refusalOf(() => verifyPayload(body, request, secrets, read));
  if (code === undefined) return verifies(`${scheme.header} is the HMAC of the body.`);
  const context = { request, body, secrets, scheme, time };
  return explanation(await pace.run(() => remedyOfHmac(context, code)), code);
}

const maxField = 8192;

/** The time in the fields of a scheme, as text. */
function timeOf(request: HeaderLines, { timestamp, header }: SignatureScheme): string {
  const field = (name: string): string => fieldLines(request, name.toLowerCase())[0]?.trim() ?? "";
  return timestamp !== undefined && "header" in timestamp
    ? field(timestamp.header)
    : (/t=(\d+)/.exec(field(header).slice(0, maxField))?.[1] ?? "");
}

function schemeOf({ scheme = { header: "X-Payload-Signature" } }: VerifyPayloadOptions): SignatureScheme {
  if (typeof scheme !== "string") return scheme;
  // verifyPayload refuses a name that it does not know.
  return Object.hasOwn(signatureSchemes, scheme) ? signatureSchemes[scheme] : { header: "" };
}

async function remedyOfHmac(context: HmacContext, code: string): Promise<Remedy> {
  const { request, secrets, scheme, time } = context;
  const { header, timestamp, prefix = "", signatureEncodings = ["base64"], algorithm = "sha256" } = scheme;
  const lines = fieldLines(request, header.toLowerCase());
  if (code === "payload-signature-missing") return missingField(request, header);
  if (code !== "payload-signature-malformed" && code !== "payload-signature-wrong") {
    const isField = timestamp !== undefined && "header" in timestamp;
    return remedyOfTime(code, time, isField ? timestamp.header : "the time of the signature");
  }
  if (lines.length > 1) {
    return ["hmac-repeated", `Send one ${header}: the request has ${lines.length} of them.`];
  }
  const found = await explainHmacForm(lines[0] ?? "", context);
  if (found !== undefined) return found;
  if (code === "payload-signature-malformed") {
    const form = signatureEncodings.join(" or ") + (prefix === "" ? "" : ` behind ${quoted(prefix)}`);
    return ["hmac-form", `Write ${header} as an HMAC by ${algorithm} in ${form}.`];
  }
  const any = secrets.length === 1 ? "the secret" : `any of the ${secrets.length} secrets`;
  return [
    "hmac-wrong-secret",
    `Compare the secrets of both sides: ${header} does not fit ${any} in any usual reading, nor the body in any usual form, so the sender has another secret or another body.`,
  ];
}

function missingField(request: HeaderLines, header: string): Remedy {
  const scheme = Object.entries(signatureSchemes).find(
    ([, each]) => each.header !== header && fieldLines(request, each.header.toLowerCase()).length > 0,
  );
  if (scheme !== undefined) {
    const [name, other] = scheme;
    const advice = `Set scheme to ${quoted(name)}, or let the sender sign in ${header}`;
    return ["hmac-other-scheme", `${advice}: the request has ${other.header} instead.`];
  }
  const like = request.rawHeaders.find(
    (name, index) => index % 2 === 0 && plain(name).endsWith("signature") && plain(name) !== plain(header),
  );
  if (like === undefined) {
    return ["hmac-missing", `Send ${header} with the HMAC of the body: the request has none.`];
  }
  const advice = `Set header to the field that the sender uses, or let it send ${header}`;
  return ["hmac-field-name", `${advice}: the request has ${quoted(like)}.`];
}

function remedyOfTime(code: string, time: string, field: string): Remedy {
  const seconds = "whole seconds since 1970";
  if (code === "payload-timestamp-malformed" && /^\d{13}$/.test(time)) {
    return ["hmac-time-milliseconds", `Send ${field} as ${seconds}, not as milliseconds.`];
  }
  const remedies: Readonly<Record<string, Remedy>> = {
    "payload-timestamp-missing": ["hmac-time-missing", `Send ${field}, ${seconds}: the request has none.`],
    "payload-timestamp-malformed": ["hmac-time-form", `Send ${field} as ${seconds}.`],
    "payload-timestamp-expired": [
      "hmac-expired",
      `Sign each delivery anew, and compare the clocks: ${field} is older than toleranceSeconds allow.`,
    ],
    "payload-timestamp-future": [
      "hmac-in-future",
      `Compare the clocks: ${field} lies ahead of the receiver's clock.`,
    ],
    "payload-id-missing": [
      "hmac-id-missing",
      "Send the identifier of the message in its field: it is signed.",
    ],
    "payload-id-malformed": [
      "hmac-id-form",
      "Send one identifier of the message of visible ASCII, without dots.",
    ],
  };
  return remedies[code] ?? [code, `Look up the refusal ${quoted(code)}.`];
}
