import { warnOfError } from "@countersign/core";
import {
  explainAddress,
  explainBasicAuth,
  explainDigest,
  explainHmac,
  explainPayload,
  explainSignature,
  knownBody,
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
  return {
    explanations: record.verdicts
      .filter(({ outcome }) => outcome !== "pass")
      .map((verdict) => {
        const { what, sentence, code, details } = explainVerdict(record, verdict, { by, signature });
        return { guard: verdict.guard, what, sentence, code, details };
      }),
    bases: expected === undefined ? undefined : { expected, difference: signature?.difference },
  };
}

interface Found {
  readonly by: Explainers;
  readonly signature: SignatureExplanation | undefined;
}

/** What its own explanation says, where that is about the same refusal; else what the check has said. */
function explainVerdict(record: RecordedRequest, verdict: RecordedVerdict, found: Found): Explanation {
  const explained = attempt(() => explainBy(record, verdict, found));
  const isOfIt = explained !== undefined && explained.code !== undefined && explained.code === verdict.code;
  return isOfIt ? explained : messageOf(record, verdict);
}

/** Without one explanation the request is shown all the same. */
function attempt<T>(explain: () => T): T | undefined {
  try {
    return explain();
  } catch (error) {
    warnOfError("inspector", "could not explain a refusal", error);
    return undefined;
  }
}

function explainBy(
  record: RecordedRequest,
  { guard, code = "" }: RecordedVerdict,
  { by, signature }: Found,
): Explanation | undefined {
  const { rawHeaders, peer, faults } = record;
  const body = wholeBody(record);
  if (faults.length > 0 && code.endsWith("-invalid"))
    return body === undefined ? undefined : { ...explainPayload(body, faults), code };
  switch (guard) {
    case signatureGuard:
      return digestOf(record, code) ?? signature;
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
function digestOf(record: RecordedRequest, code: string): Explanation | undefined {
  const body = wholeBody(record);
  return code.startsWith("content-digest-") && body !== undefined ? explainDigest(record, body) : undefined;
}

const sentences: Readonly<Record<string, string>> = {
  "nonce-replayed":
    "Use a nonce of its own for each request, also when it is sent again: this one was used before.",
  "request-aborted": "Nothing to change: the client closed the connection before the body was complete.",
};

function messageOf(record: RecordedRequest, { guard, code, message, docs }: RecordedVerdict): Explanation {
  const sentence =
    sentences[code ?? ""] ?? message ?? "The guard failed by itself: look at the app's own log.";
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
