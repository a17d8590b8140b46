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
import { explanation, quoted, refusalOf, type Explanation, type Remedy } from "./explanation.ts";
import { explainHmacForm, type HmacContext } from "./hmac-misses.ts";
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
 * Says why the HMAC of a webhook does not fit its body, and what has to change. It names the secret that fits by its position alone: no
 * explanation holds a secret, an HMAC that was computed, or the received one. At most 32 secrets are tried, 2,000 HMACs and 64 MB. Rejects with a TypeError on a bad
 * option; whatever the request is, it gets an explanation.
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
  const code = refusalOf(() => verifyPayload(body, headersOf(request), secrets, read));
  if (code === undefined)
    return explanation("verifies", undefined, `${scheme.header} is the HMAC of the body.`);
  const context = { request, body, secrets, scheme, time };
  const [what, sentence] = await pace.run(() => remedyOfHmac(context, code));
  return explanation(what, code, sentence);
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

function headersOf({ rawHeaders }: HeaderLines): Record<string, string | string[]> {
  const headers = new Map<string, string[]>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? "").toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), rawHeaders[index + 1] ?? ""]);
  }
  return Object.fromEntries(
    [...headers].map(([name, lines]) => [name, lines.length === 1 ? lines[0]! : lines]),
  );
}

async function remedyOfHmac(context: HmacContext, code: string): Promise<Remedy> {
  const { request, secrets, scheme } = context;
  const { header, prefix = "", signatureEncodings = ["base64"], algorithm = "sha256" } = scheme;
  const lines = fieldLines(request, header.toLowerCase());
  if (code === "payload-signature-missing") return missingField(request, header);
  if (code !== "payload-signature-malformed" && code !== "payload-signature-wrong") {
    return remedyOfTime(context, code);
  }
  if (lines.length > 1)
    return ["hmac-repeated", `Send one ${header}: the request has ${lines.length} of them.`];
  const found = await explainHmacForm(lines[0] ?? "", context);
  if (found !== undefined) return found;
  if (code === "payload-signature-malformed") {
    const behind = prefix === "" ? "" : ` behind ${quoted(prefix)}`;
    return [
      "hmac-form",
      `Write ${header} as an HMAC by ${algorithm} in ${signatureEncodings.join(" or ")}${behind}.`,
    ];
  }
  const count = secrets.length === 1 ? "the secret" : `any of the ${secrets.length} secrets`;
  return [
    "hmac-wrong-secret",
    `Compare the secrets of both sides: ${header} does not fit ${count} in any usual reading, nor the body in any usual form, so the sender has another secret or another body.`,
  ];
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]/g, "");

function missingField(request: HeaderLines, header: string): Remedy {
  const scheme = Object.entries(signatureSchemes).find(
    ([, each]) => each.header !== header && fieldLines(request, each.header.toLowerCase()).length > 0,
  );
  if (scheme !== undefined) {
    const [name, other] = scheme;
    return [
      "hmac-other-scheme",
      `Set scheme to ${quoted(name)}, or let the sender sign in ${header}: the request has ${other.header} instead.`,
    ];
  }
  const like = request.rawHeaders.find(
    (name, index) => index % 2 === 0 && plain(name).endsWith("signature") && plain(name) !== plain(header),
  );
  return like === undefined
    ? ["hmac-missing", `Send ${header} with the HMAC of the body: the request has none.`]
    : [
        "hmac-field-name",
        `Set header to the field that the sender uses, or let it send ${header}: the request has ${quoted(like)}.`,
      ];
}

function remedyOfTime({ scheme: { timestamp }, time }: HmacContext, code: string): Remedy {
  const field =
    timestamp !== undefined && "header" in timestamp ? timestamp.header : "the time of the signature";
  switch (code) {
    case "payload-timestamp-missing":
      return ["hmac-time-missing", `Send ${field}, whole seconds since 1970: the request has none.`];
    case "payload-timestamp-malformed":
      return /^\d{13}$/.test(time)
        ? ["hmac-time-milliseconds", `Send ${field} as whole seconds since 1970, not as milliseconds.`]
        : ["hmac-time-form", `Send ${field} as whole seconds since 1970.`];
    case "payload-timestamp-expired":
      return [
        "hmac-expired",
        `Sign each delivery anew, and compare the clocks: ${field} is older than toleranceSeconds allow.`,
      ];
    case "payload-timestamp-future":
      return ["hmac-in-future", `Compare the clocks: ${field} lies ahead of the receiver's clock.`];
    case "payload-id-missing":
      return ["hmac-id-missing", "Send the identifier of the message in its field: it is signed."];
    case "payload-id-malformed":
      return ["hmac-id-form", "Send one identifier of the message of visible ASCII, without dots."];
    default:
      return [code, `Look up the refusal ${quoted(code)}.`];
  }
}
