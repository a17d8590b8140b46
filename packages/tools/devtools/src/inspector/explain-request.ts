import { warnOfError } from "@countersign/core/internal";
import {
  explainAddress,
  explainBasicAuth,
  explainClaim,
  explainDigest,
  explainHmac,
  explainPayload,
  explainSignature,
  knownBody,
  remedyOf,
  type ExplainHmacOptions,
  type Explanation,
  type SignatureExplanation,
} from "@countersign/cli/explain";
import { signatureSchemes } from "@countersign/webhook-hmac";
import { allCodes } from "@countersign/cli/codes";
import type { Explainers, ResolvedInspectorOptions } from "./options.ts";
import type { RecordedRequest, RecordedVerdict } from "./recorded-request.ts";
import { inTime } from "./work-view.ts";

export interface ExplainedRequest {
  readonly explanations: readonly (Explanation & { readonly guard: string })[];
  /** Undefined if none can be computed, or no keys are known. */
  readonly bases: { readonly expected: string } | undefined;
}

/** Undefined if nobody has read the body, or only a part is kept. */
export function wholeBody(record: RecordedRequest): Uint8Array | undefined {
  const { body, bodyBytes } = record;
  return body === undefined || body.length === bodyBytes ? knownBody(record) : undefined;
}

const signatureGuard = "httpSignatureVerify";

/** Explains each refusal by the options of its check. Never on the request path: it takes up to seconds. */
export async function explainRequest(record: RecordedRequest, by: Explainers): Promise<ExplainedRequest> {
  const judged = record.verdicts.find(({ guard }) => guard === signatureGuard);
  const request = { ...record, body: wholeBody(record) };
  const signature =
    by.signature && judged && (await explainSignature(request, { ...by.signature, clock: () => judged.at }));
  const expected = signature?.expectedBase;
  const refusals = record.verdicts.filter(({ outcome }) => outcome !== "pass");
  const explanations = refusals.map(async (verdict) => {
    const { what, sentence, code, details } = await explainVerdict(record, verdict, { ...by, signature });
    return { guard: verdict.guard, what, sentence, code, details };
  });
  return {
    explanations: await Promise.all(explanations),
    bases: expected === undefined ? undefined : { expected },
  };
}

type Found = Omit<Explainers, "signature"> & { readonly signature: SignatureExplanation | undefined };

async function explainVerdict(
  record: RecordedRequest,
  verdict: RecordedVerdict,
  found: Found,
): Promise<Explanation> {
  try {
    const explained = await explainBy(record, verdict, found);
    if (explained?.code !== undefined && explained.code === verdict.code) return explained;
  } catch (error) {
    // If one explanation fails, the request is still shown.
    warnOfError("inspector", "could not explain a refusal", error);
  }
  return messageOf(record, verdict);
}

async function explainBy(
  record: RecordedRequest,
  { guard, code = "" }: RecordedVerdict,
  by: Found,
): Promise<Explanation | undefined> {
  const { rawHeaders, peer, faults } = record;
  const body = wholeBody(record);
  if (faults.length > 0 && code.endsWith("-invalid"))
    return body && { ...explainPayload(body, faults), code };
  const isOfDigest = guard === signatureGuard || guard === "contentDigest";
  // The digest needs no key.
  if (isOfDigest && body && code.startsWith("content-digest-")) return explainDigest(record, body);
  switch (guard) {
    case signatureGuard:
      return by.signature;
    case "webhookHmac":
      return by.hmac && body && explainHmac({ rawHeaders }, body, asOf(by.hmac, record.at));
    case "webhookBasicAuth":
      return by.basicAuth && explainBasicAuth({ rawHeaders }, by.basicAuth);
    case "ipAllowlist":
      return by.addresses && explainAddress({ ...by.addresses, rawHeaders, peer });
    default:
      return undefined;
  }
}

// verifyPayload refuses a clock for a scheme without a timestamp.
function asOf(options: ExplainHmacOptions, at: number): ExplainHmacOptions {
  const scheme = typeof options.scheme === "string" ? signatureSchemes[options.scheme] : options.scheme;
  return scheme?.timestamp === undefined ? options : { ...options, clock: () => at };
}

function messageOf(record: RecordedRequest, { guard, code, message }: RecordedVerdict): Explanation {
  const what = code ?? "unexpected-error";
  const failed = record.errors.length === 0 ? "look at the app's own log" : "look at the exception";
  const sentence = remedyOf(what) ?? message ?? `The check did not come to a verdict: ${failed}.`;
  const isOfBytes =
    guard === "webhookHmac" || guard === "contentDigest" || what.startsWith("content-digest-");
  const meaning = allCodes().get(what);
  const details = meaning === undefined ? [] : [`Cause: ${meaning.cause}`, `Remedy: ${meaning.remedy}`];
  if (isOfBytes && wholeBody(record) === undefined)
    details.unshift("The body is not here as a whole to be looked at.");
  return { what, sentence, code, details };
}

/** Asks the first store that has the key; undefined if none has it and one does not answer. */
export async function claimNow(
  stores: ResolvedInspectorOptions["stores"],
  key: string,
): Promise<Explanation | undefined> {
  if (stores.size === 0) return undefined;
  const answers = await Promise.allSettled(
    [...stores.values()].map((store) => inTime(async () => store.read(key))),
  );
  const record = answers.map((each) => (each.status === "fulfilled" ? each.value : undefined)).find(Boolean);
  const isSilent = answers.some(({ status }) => status === "rejected");
  return record === undefined && isSilent ? undefined : explainClaim({ key, record });
}
