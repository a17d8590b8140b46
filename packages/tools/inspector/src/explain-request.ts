import { warnOfError } from "@countersign/core/door";
import {
  explainAddress,
  explainBasicAuth,
  explainDigest,
  explainHmac,
  explainPayload,
  explainSignature,
  knownBody,
  remedyOf,
  type ExplainHmacOptions,
  type Explanation,
  type SignatureExplanation,
} from "@countersign/explain";
import { signatureSchemes } from "@countersign/webhook-hmac";
import type { Explainers } from "./options.ts";
import type { RecordedRequest, RecordedVerdict } from "./recorded-request.ts";

/** Why a guard has refused a request. */
interface GuardExplanation extends Explanation {
  readonly guard: string;
}

/** What was found out about a request. */
export interface ExplainedRequest {
  readonly explanations: readonly GuardExplanation[];
  /** Undefined where no base can be computed, or no keys are known. */
  readonly bases: (Pick<SignatureExplanation, "difference"> & { readonly expected: string }) | undefined;
}

/** The bytes of the body; undefined where nobody has read them, and where they are not kept whole. */
export function wholeBody({
  method,
  target,
  rawHeaders,
  body,
  bodyBytes,
}: RecordedRequest): Uint8Array | undefined {
  if (body === undefined) return knownBody({ method, target, rawHeaders });
  return body.length === bodyBytes ? body : undefined;
}

const signatureGuard = "httpSignatureVerify";

/** Explains each refusal of a request, by the options of its checks. Takes up to seconds: never on the request path. */
export async function explainRequest(record: RecordedRequest, by: Explainers): Promise<ExplainedRequest> {
  const judged = record.verdicts.find(({ guard }) => guard === signatureGuard);
  const signature =
    by.signature === undefined || judged === undefined
      ? undefined
      : await explainSignature(
          { ...record, body: wholeBody(record) },
          { ...by.signature, clock: () => judged.at },
        );
  const expected = signature?.expectedBase;
  const refusals = record.verdicts.filter(({ outcome }) => outcome !== "pass");
  const explanations = refusals.map(async (verdict) => {
    const { what, sentence, code, details } = await explainVerdict(record, verdict, { by, signature });
    return { guard: verdict.guard, what, sentence, code, details };
  });
  return {
    explanations: await Promise.all(explanations),
    bases: expected === undefined ? undefined : { expected, difference: signature?.difference },
  };
}

interface Found {
  readonly by: Explainers;
  readonly signature: SignatureExplanation | undefined;
}

/** What its own explanation says, where that is about the same refusal; else what the check has said. */
async function explainVerdict(
  record: RecordedRequest,
  verdict: RecordedVerdict,
  found: Found,
): Promise<Explanation> {
  const explained = await attempt(() => explainBy(record, verdict, found));
  const isOfIt = explained !== undefined && explained.code !== undefined && explained.code === verdict.code;
  return isOfIt ? explained : messageOf(record, verdict);
}

/** Without one explanation the request is shown all the same. */
async function attempt<T>(explain: () => Promise<T>): Promise<T | undefined> {
  try {
    return await explain();
  } catch (error) {
    warnOfError("inspector", "could not explain a refusal", error);
    return undefined;
  }
}

async function explainBy(
  record: RecordedRequest,
  { guard, code = "" }: RecordedVerdict,
  { by, signature }: Found,
): Promise<Explanation | undefined> {
  const { rawHeaders, peer, faults } = record;
  const body = wholeBody(record);
  if (faults.length > 0 && code.endsWith("-invalid"))
    return body === undefined ? undefined : { ...explainPayload(body, faults), code };
  switch (guard) {
    case signatureGuard:
      return (await digestOf(record, code)) ?? signature;
    case "contentDigest":
      return digestOf(record, code);
    case "webhookHmac":
      return by.hmac === undefined || body === undefined
        ? undefined
        : explainHmac({ rawHeaders }, body, asOf(by.hmac, record.at));
    case "webhookBasicAuth":
      return by.basicAuth === undefined ? undefined : explainBasicAuth({ rawHeaders }, by.basicAuth);
    case "ipAllowlist":
      return by.addresses === undefined ? undefined : explainAddress({ ...by.addresses, rawHeaders, peer });
    default:
      return undefined;
  }
}

/** The check as it was then: a clock is refused beside a scheme without a timestamp. */
function asOf(options: ExplainHmacOptions, at: number): ExplainHmacOptions {
  const scheme = typeof options.scheme === "string" ? signatureSchemes[options.scheme] : options.scheme;
  return scheme?.timestamp === undefined ? options : { ...options, clock: () => at };
}

/** The digest needs no key. */
async function digestOf(record: RecordedRequest, code: string): Promise<Explanation | undefined> {
  const body = wholeBody(record);
  return code.startsWith("content-digest-") && body !== undefined ? explainDigest(record, body) : undefined;
}

function messageOf(record: RecordedRequest, { guard, code, message, docs }: RecordedVerdict): Explanation {
  const sentence =
    remedyOf(code ?? "") ?? message ?? "The guard failed by itself: look at the app's own log.";
  const details = [
    ...(isOfBytes(guard, code) && wholeBody(record) === undefined
      ? ["The body is not here as a whole to be looked at."]
      : []),
    ...(docs === undefined ? [] : [`What the code means: ${docs}`]),
  ];
  return { what: code ?? "unexpected-error", sentence, code, details };
}

function isOfBytes(guard: string, code = ""): boolean {
  return guard === "webhookHmac" || guard === "contentDigest" || code.startsWith("content-digest-");
}
