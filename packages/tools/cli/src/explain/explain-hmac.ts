import {
  fieldLines,
  option,
  readSecretTexts,
  splitOptions,
  type HeaderLines,
  type OptionTable,
} from "@countersign/core/internal";
import { signatureSchemes, verifyPayload, type SignatureScheme } from "@countersign/webhook-hmac";
import { explanation, quoted, refusalOf, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { explainHmacForm, type HmacContext } from "./hmac-misses.ts";
import { plain } from "./missing-signature.ts";
import { pace } from "./pace.ts";
import { remedy, type Told } from "./remedies.ts";

/** What the HMAC of a webhook is explained by: the secrets, and the options of `verifyPayload`. */
type VerifyPayloadOptions = NonNullable<Parameters<typeof verifyPayload>[3]>;

export interface ExplainHmacOptions extends VerifyPayloadOptions {
  /** Each of them is tried; the explanation names them by their position, from 1. */
  readonly secrets: readonly string[];
  /** Take the time of the signature, where the scheme has one, for now: for a capture, which is always late. Default false. */
  readonly atItsTime?: boolean | undefined;
}

/** The options that verifyPayload does not have; it reads the secrets itself. */
export const hmacTable = {
  secrets: option.own(readSecretTexts),
  atItsTime: option.boolean(false),
} satisfies OptionTable<Pick<ExplainHmacOptions, "atItsTime" | "secrets">, unknown>;

/**
 * Says why the HMAC of a webhook does not fit its body. Names the fitting secret by position: no explanation holds a secret or an HMAC,
 * computed or received. Tries at most 32 secrets, 2,000 HMACs and 64 MB. Rejects with a TypeError on a bad option.
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
    return remedy("hmac-repeated", { header, count: lines.length });
  }
  const found = await explainHmacForm(lines[0] ?? "", context);
  if (found !== undefined) return found;
  if (code === "payload-signature-malformed") {
    const form = signatureEncodings.join(" or ") + (prefix === "" ? "" : ` after ${quoted(prefix)}`);
    return remedy("hmac-form", { header, algorithm, form });
  }
  const any = secrets.length === 1 ? "the secret" : `any of the ${secrets.length} secrets`;
  return remedy("hmac-wrong-secret", { header, any });
}

function missingField(request: HeaderLines, header: string): Remedy {
  const scheme = Object.entries(signatureSchemes).find(
    ([, each]) => each.header !== header && fieldLines(request, each.header.toLowerCase()).length > 0,
  );
  if (scheme !== undefined) {
    const [name, other] = scheme;
    return remedy("hmac-other-scheme", { name: quoted(name), header, other: other.header });
  }
  const like = request.rawHeaders.find(
    (name, index) => index % 2 === 0 && plain(name).endsWith("signature") && plain(name) !== plain(header),
  );
  return like === undefined
    ? remedy("hmac-missing", { header })
    : remedy("hmac-field-name", { header, like: quoted(like) });
}

const ofTimes: Readonly<Record<string, Told>> = {
  "payload-timestamp-missing": "hmac-time-missing",
  "payload-timestamp-malformed": "hmac-time-form",
  "payload-timestamp-expired": "hmac-expired",
  "payload-timestamp-future": "hmac-in-future",
  "payload-id-missing": "hmac-id-missing",
  "payload-id-malformed": "hmac-id-form",
};

function remedyOfTime(code: string, time: string, field: string): Remedy {
  const isMilliseconds = code === "payload-timestamp-malformed" && /^\d{13}$/.test(time);
  const what = isMilliseconds ? "hmac-time-milliseconds" : ofTimes[code];
  return what === undefined ? [code, `Look up the refusal ${quoted(code)}.`] : remedy(what, { field });
}
