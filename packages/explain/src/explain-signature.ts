import { fieldLines, isGuardError, type ReceivedRequest } from "@countersign/core";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { recheckHttpSignature } from "@countersign/http-signature-verify";
import { knownBody, type ExplainedRequest } from "./captured-request.ts";
import { differenceOf, type BaseDifference } from "./base-difference.ts";
import { rightDraft } from "./draft.ts";
import { explainDigest } from "./explain-digest.ts";
import { explanation, quoted, visibleBase, type Explanation } from "./explanation.ts";
import { explainFields } from "./field-faults.ts";
import { explainKey, explainPolicy, isKeyCode } from "./policy-faults.ts";
import { explainMissingSignature } from "./missing-signature.ts";
import type { MismatchContext } from "./near-miss.ts";
import { nearMisses } from "./near-misses.ts";
import { readExplainOptions, type ExplainSignatureOptions } from "./options.ts";
import { pace } from "./pace.ts";
import { memberText } from "./params-misses.ts";
import { search } from "./search.ts";
import {
  baseOfMessage,
  keyidsOf,
  messageOf,
  numberOf,
  signatureOf,
  textOf,
  type LabelledSignature,
  type SignatureContext,
} from "./signature-context.ts";

/** Why a signature was refused. */
export interface SignatureExplanation extends Explanation {
  /** Signatures that were verified to find it. */
  readonly attempts: number;
  /** The base that the verifier expects, its control characters visible; undefined where none can be computed. */
  readonly expectedBase: string | undefined;
  /** The option `signerBase` in the same form. */
  readonly signerBase: string | undefined;
  /** Where the two bases differ first. */
  readonly difference: BaseDifference | undefined;
}

/**
 * Says why the signature of a request is refused, and what its signer has to change: it asks httpSignatureVerify's own check, and for a
 * mismatch tries near misses with the public key, at most `maxAttempts`. Never on the request path: it takes up to seconds, and what it
 * says is for operators, not for callers. Those of a process are made one after the other, and let others have a turn of the event loop
 * about every 20 ms. It claims no nonce, so that a replay `verifies`. Rejects with a TypeError on a bad option alone; whatever the request
 * is, it gets an explanation.
 */
export async function explainSignature(
  request: ExplainedRequest,
  options: ExplainSignatureOptions,
): Promise<SignatureExplanation> {
  const { own, check } = readExplainOptions("explainSignature", options);
  assertRequest(request);
  const body = knownBody(request);
  const received = receivedOf(request, body);
  // What has failed says the check.
  const keys = await own.keys(keyidsOf(received)).catch(() => undefined);
  const known = { ...own, keys: keys ?? new Map<string, VerificationKey>() };
  const context = { request: received, body, own: known, check: check(keys), code: undefined };
  // What is left is work alone, and waits for nobody.
  return pace.run(() => explainJudged(context));
}

async function explainJudged(unjudged: SignatureContext): Promise<SignatureExplanation> {
  const code = await verdictOn(unjudged);
  const context = { ...unjudged, code };
  await pace.rest();
  if (code === undefined) {
    return alone(
      explanation("verifies", undefined, "The signature verifies; nonces are not looked at."),
      context,
    );
  }
  if (isTimeCode(code)) return explainTime(context);
  return explainCode(context);
}

function assertRequest({ method, target, rawHeaders, body }: ExplainedRequest): void {
  const isText = typeof method === "string" && typeof target === "string" && Array.isArray(rawHeaders);
  if (
    !isText ||
    ![...rawHeaders].every((text) => typeof text === "string") ||
    !(body === undefined || body instanceof Uint8Array)
  ) {
    throw new TypeError(
      "explainSignature: the request needs method, target and rawHeaders as text, and a body of bytes",
    );
  }
}

function receivedOf(
  { method, target, rawHeaders, scheme }: ExplainedRequest,
  body: Uint8Array | undefined,
): ReceivedRequest {
  return {
    method,
    target,
    rawHeaders: [...rawHeaders],
    scheme: scheme === "http" ? "http" : "https",
    clientAddress: undefined,
    body: async () => body ?? neededBody(),
  };
}

/** In the place of a refusal's code: all fits but the body, which is not known. */
const bodyNotKnown = "body-not-known";

class BodyNotKnown extends Error {}

function neededBody(): never {
  throw new BodyNotKnown();
}

const someByte = new Uint8Array(1);

/** The code of the check's refusal; undefined when it admits. */
async function verdictOn(context: SignatureContext): Promise<string | undefined> {
  const { request, body, check } = context;
  // Whether an unsigned body is refused does not depend on its bytes.
  const isUnsigned = body === undefined && !coversDigest(context);
  const judged = isUnsigned ? { ...request, body: async () => someByte } : { ...request };
  try {
    await recheckHttpSignature(judged, check);
    return undefined;
  } catch (error) {
    if (error instanceof BodyNotKnown) return bodyNotKnown;
    if (isGuardError(error)) return error.code;
    throw error;
  }
}

function coversDigest(context: SignatureContext): boolean {
  return signatureOf(context)?.input.components.some(({ name }) => name === "content-digest") === true;
}

function isTimeCode(code: string): boolean {
  return code === "signature-expired" || code === "created-in-future";
}

/** The time, and what else is wrong: of a request that was captured earlier the time is no news. */
async function explainTime(context: SignatureContext): Promise<SignatureExplanation> {
  const first = alone(explainPolicy(context, signatureOf(context)?.input), context);
  const created = numberOf(signatureOf(context)?.input, "created");
  const atThatTime = created === undefined ? undefined : { ...context.check, clock: () => created * 1000 };
  if (atThatTime === undefined) return first;
  const then = { ...context, check: atThatTime };
  const code = await verdictOn(then);
  if (code === undefined || isTimeCode(code)) return first;
  const second = await explainCode({ ...then, code });
  return {
    ...second,
    what: first.what,
    sentence: first.sentence,
    code: first.code,
    details: [...first.details, `Apart from the time: ${second.sentence}`, ...second.details],
  };
}

async function explainCode(context: SignatureContext): Promise<SignatureExplanation> {
  const { code = "" } = context;
  if (code === bodyNotKnown) {
    const found = explainDigest(context.request, undefined);
    return alone({ ...found, details: ["The signature fits the fields of the request."] }, context);
  }
  if (code === "key-store-unavailable") {
    const sentence =
      "Nothing to change: the key store gave no answer, so nobody knows whether the signature fits.";
    return alone(explanation(code, code, sentence), context);
  }
  if (code.startsWith("content-digest-")) {
    return alone(explainDigest(context.request, context.body), context);
  }
  if (code === "signature-missing") return alone(explainMissingSignature(context), context);
  if (code === "field-invalid" || code === "field-limit") return alone(explainFields(context), context);
  const signature = signatureOf(context);
  if (signature !== undefined && (code === "signature-mismatch" || code === "signature-malformed")) {
    return explainMismatch(context, signature);
  }
  if (signature !== undefined && isKeyCode(code)) {
    return alone(await explainKey(context, signature, baseOfMessage(context, signature.input)), context);
  }
  return alone(explainPolicy(context, signature?.input), context);
}

const maxBaseBytes = 16_384;

async function explainMismatch(
  context: SignatureContext,
  signature: LabelledSignature,
): Promise<SignatureExplanation> {
  const { own, code } = context;
  const base = baseOfMessage(context, signature.input);
  const key = own.keys.get(textOf(signature.input, "keyid") ?? "");
  if (base === undefined || key === undefined) return alone(explainPolicy(context, signature.input), context);
  const shown = visibleBase(base);
  const right = rightDraft(base, key, signature.signature);
  const mismatch = mismatchContext(context, signature, right);
  const misses = base.length > maxBaseBytes ? [] : await nearMisses(mismatch, pace);
  const { found, attempts } = await search(right, misses, { maxAttempts: own.maxAttempts, pace });
  if (found !== undefined) {
    const [first, second] = found.misses;
    const sentence =
      second === undefined
        ? (first?.sentence ?? "")
        : `Two things: ${first?.sentence ?? ""} And: ${second.sentence}`;
    const what = found.misses.map((each) => each.what).join("+");
    return { ...explanation(what, code, sentence), attempts, ...bases(shown, own.signerBase, undefined) };
  }
  const difference = own.signerBase === undefined ? undefined : differenceOf(base, own.signerBase);
  const details =
    context.body === undefined ? ["The body was not read: what may have been made of it was not tried."] : [];
  const unexplained = explainByBases(context, right, difference);
  return { ...unexplained, details, attempts, ...bases(shown, own.signerBase, difference) };
}

function mismatchContext(
  context: SignatureContext,
  { label, others }: LabelledSignature,
  right: MismatchContext["right"],
): MismatchContext {
  const { request, body, own } = context;
  const { method, target, authority } = messageOf(context);
  return {
    method,
    target,
    rawHeaders: request.rawHeaders,
    body,
    label,
    member: memberText(fieldLines(request, "signature-input").join(", "), label),
    authority: authority ?? fieldLines(request, ":authority")[0] ?? fieldLines(request, "host")[0],
    pathPrefixes: own.pathPrefixes,
    keys: own.keys,
    otherSignatures: others,
    right,
  };
}

/** What is left when no near miss fits: the bases, or that the key is another one. */
function explainByBases(
  { own, code }: SignatureContext,
  { key, signature, verify }: MismatchContext["right"],
  difference: BaseDifference | undefined,
): Explanation {
  const keyid = quoted(key.keyid);
  if (own.signerBase === undefined) {
    return explanation(
      "signature-unexplained",
      code,
      `Compare the signature base of the signer with the expected one: the signature fits no usual mistake under the key ${keyid}, so it is another private key, or another base.`,
    );
  }
  const isSigned = verify(key, Buffer.from(own.signerBase, "utf8"), signature);
  if (difference === undefined) {
    return explanation(
      "signature-of-other-key",
      code,
      `Sign with the private key that belongs to ${keyid}: the signer's base is the expected one, and the signature does not fit it.`,
    );
  }
  const place = `${difference.component} differs at character ${difference.column} of line ${difference.line}`;
  return isSigned
    ? explanation("base-differs", code, `Change the signature base where ${place}; the key is the right one.`)
    : explanation(
        "base-and-signature-differ",
        code,
        `Change the signature base where ${place}, and look at the key: the signature does not fit the signer's own base either.`,
      );
}

function bases(
  expectedBase: string,
  signerBase: string | undefined,
  difference: BaseDifference | undefined,
): Pick<SignatureExplanation, "difference" | "expectedBase" | "signerBase"> {
  return {
    expectedBase,
    signerBase: signerBase === undefined ? undefined : visibleBase(signerBase),
    difference,
  };
}

function alone(
  found: Explanation & { readonly attempts?: number },
  context: SignatureContext,
): SignatureExplanation {
  const signature = signatureOf(context);
  const base = signature === undefined ? undefined : baseOfMessage(context, signature.input);
  const { attempts = 0, ...rest } = found;
  return {
    ...rest,
    attempts,
    expectedBase: base === undefined ? undefined : visibleBase(base),
    signerBase: undefined,
    difference: undefined,
  };
}
