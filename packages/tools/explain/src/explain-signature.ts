import { isGuardError, type ReceivedRequest } from "@countersign/core";
import { fieldLines } from "@countersign/core/door";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { recheckHttpSignature } from "@countersign/http-signature-verify";
import { differenceOf, type BaseDifference } from "./base-difference.ts";
import { baseMisses } from "./base-misses.ts";
import { knownBody, type ExplainedRequest } from "./captured-request.ts";
import { baseOf, identityOfDraft, isSigned, rightDraft, type Draft, type MismatchContext } from "./draft.ts";
import { digestExplanation } from "./explain-digest.ts";
import {
  explanation,
  explanationOf,
  quoted,
  visibleBase,
  type Explanation,
  type Remedy,
} from "./explanation.ts";
import { explainFields } from "./field-faults.ts";
import { explainMissingSignature } from "./missing-signature.ts";
import type { NearMiss } from "./near-miss.ts";
import { readExplainOptions, type ExplainSignatureOptions } from "./options.ts";
import { pace } from "./pace.ts";
import { memberText, paramsMisses } from "./params-misses.ts";
import { explainKey, explainPolicy, isKeyCode } from "./policy-faults.ts";
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
import { signingMisses } from "./signing-misses.ts";
import { valueMisses } from "./value-misses.ts";

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
  const judged = { request: received, body, own: known, check: check(keys), code: undefined };
  const context = { ...judged, input: signatureOf(judged)?.input };
  // What is left is work alone, and waits for nobody.
  return pace.run(() => explainJudged(context));
}

async function explainJudged(unjudged: SignatureContext): Promise<SignatureExplanation> {
  const code = await verdictOn(unjudged);
  const context = { ...unjudged, code };
  await pace.rest();
  if (code === undefined) {
    const sentence = "The signature verifies; nonces are not looked at.";
    return alone(explanation("verifies", undefined, sentence), context);
  }
  return isTimeCode(code) ? explainTime(context) : explainCode(context);
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

function coversDigest({ input }: SignatureContext): boolean {
  return input?.components.some(({ name }) => name === "content-digest") === true;
}

function isTimeCode(code: string): boolean {
  return code === "signature-expired" || code === "created-in-future";
}

/** The time, and what else is wrong: of a request that was captured earlier the time is no news. */
async function explainTime(context: SignatureContext): Promise<SignatureExplanation> {
  const first = alone(explainPolicy(context), context);
  const created = numberOf(context.input, "created");
  if (created === undefined) return first;
  const then = { ...context, check: { ...context.check, clock: () => created * 1000 } };
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
  const { code = "", request, body } = context;
  if (code === bodyNotKnown) {
    const found = await digestExplanation(request, undefined);
    return alone({ ...found, details: ["The signature fits the fields of the request."] }, context);
  }
  if (code.startsWith("content-digest-")) return alone(await digestExplanation(request, body), context);
  if (code === "signature-missing") {
    const [what, sentence] = explainMissingSignature(context);
    return alone(explanation(what, code, sentence), context);
  }
  if (code === "field-invalid" || code === "field-limit") return alone(await explainFields(context), context);
  const signature = signatureOf(context);
  const base = signature === undefined ? undefined : baseOfMessage(context, signature.input);
  if (signature !== undefined && isKeyCode(code)) {
    return alone(await explainKey(context, signature, base), context);
  }
  const key = context.own.keys.get(textOf(context.input, "keyid") ?? "");
  const isMismatch = code === "signature-mismatch" || code === "signature-malformed";
  return isMismatch && signature !== undefined && base !== undefined && key !== undefined
    ? explainMismatch(context, signature, rightDraft(base, key, signature.signature))
    : alone(explainPolicy(context), context);
}

const maxBaseBytes = 16_384;

async function explainMismatch(
  context: SignatureContext,
  signature: LabelledSignature,
  right: Draft,
): Promise<SignatureExplanation> {
  const { own, code, body } = context;
  const base = baseOf(right);
  const { found, attempts } = await search({
    drafts: [right],
    misses: base.length > maxBaseBytes ? [] : await nearMisses(mismatchContext(context, signature, right)),
    fits: isSigned,
    identityOf: identityOfDraft,
    maxAttempts: own.maxAttempts,
    pace,
  });
  const expectedBase = visibleBase(base);
  const signerBase = own.signerBase === undefined ? undefined : visibleBase(own.signerBase);
  if (found !== undefined) {
    return {
      ...explanationOf(found.misses, code),
      attempts,
      expectedBase,
      signerBase,
      difference: undefined,
    };
  }
  const difference = own.signerBase === undefined ? undefined : differenceOf(base, own.signerBase);
  const [what, sentence] = explainByBases(own.signerBase, right, difference);
  const details =
    body === undefined ? ["The body was not read: what may have been made of it was not tried."] : [];
  return { ...explanation(what, code, sentence, details), attempts, expectedBase, signerBase, difference };
}

/** Every near miss, the usual ones first. */
async function nearMisses(context: MismatchContext): Promise<readonly NearMiss<Draft>[]> {
  const all: NearMiss<Draft>[] = [];
  for (const missesFrom of [baseMisses, valueMisses, signingMisses, paramsMisses]) {
    all.push(...missesFrom(context));
    // oxlint-disable-next-line no-await-in-loop -- a body is hashed many times by each
    await pace.rest();
  }
  return [...all.filter(({ isUsual }) => isUsual), ...all.filter(({ isUsual }) => !isUsual)];
}

function mismatchContext(
  context: SignatureContext,
  { label, others }: LabelledSignature,
  right: Draft,
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
  signerBase: string | undefined,
  { key, signature, verify }: Draft,
  difference: BaseDifference | undefined,
): Remedy {
  const keyid = quoted(key.keyid);
  if (signerBase === undefined) {
    return [
      "signature-unexplained",
      `Compare the signature base of the signer with the expected one: the signature fits no usual mistake under the key ${keyid}, so it is another private key, or another base.`,
    ];
  }
  if (difference === undefined) {
    return [
      "signature-of-other-key",
      `Sign with the private key that belongs to ${keyid}: the signer's base is the expected one, and the signature does not fit it.`,
    ];
  }
  const place = `${difference.component} differs at character ${difference.column} of line ${difference.line}`;
  return verify(key, Buffer.from(signerBase, "utf8"), signature)
    ? ["base-differs", `Change the signature base where ${place}; the key is the right one.`]
    : [
        "base-and-signature-differ",
        `Change the signature base where ${place}, and look at the key: the signature does not fit the signer's own base either.`,
      ];
}

function alone(
  found: Explanation & { readonly attempts?: number },
  context: SignatureContext,
): SignatureExplanation {
  const base = context.input === undefined ? undefined : baseOfMessage(context, context.input);
  const expectedBase = base === undefined ? undefined : visibleBase(base);
  return { attempts: 0, ...found, expectedBase, signerBase: undefined, difference: undefined };
}
