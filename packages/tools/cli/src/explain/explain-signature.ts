import { isGuardError, type ReceivedRequest } from "@countersign/core";
import { fieldLines } from "@countersign/core/internal";
import type { VerificationKey } from "@countersign/http-message-signatures";
import { listSignatures, parseSignatures } from "@countersign/http-message-signatures/internal";
import {
  assertVerifyOptions,
  recheckHttpSignature,
  type HttpSignatureVerifyOptions,
} from "@countersign/http-signature-verify";
import { baseMisses } from "./base-misses.ts";
import { knownBody, type ExplainedRequest } from "./captured-request.ts";
import { baseOf, identityOfDraft, isSigned, rightDraft, type Draft, type MismatchContext } from "./draft.ts";
import { digestExplanation } from "./explain-digest.ts";
import { explanation, quoted, verifies, type Explanation, type Remedy } from "./explanation.ts";
import { explainFields } from "./field-faults.ts";
import { explainMissingSignature } from "./missing-signature.ts";
import type { NearMiss } from "./near-miss.ts";
import { readExplainOptions, type ExplainSignatureOptions } from "./options.ts";
import { pace } from "./pace.ts";
import { memberText, paramsMisses } from "./params-misses.ts";
import { explainKey, explainPolicy, isKeyCode } from "./policy-faults.ts";
import { remedy } from "./remedies.ts";
import { remedyOfMisses, search } from "./search.ts";
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
import { differenceOf, visibleBase, type BaseDifference } from "./visible-base.ts";

export interface SignatureExplanation extends Explanation {
  readonly attempts: number;
  /** The base that the verifier expects, its control characters visible; undefined for a refusal that is not about it. */
  readonly expectedBase: string | undefined;
  readonly signerBase: string | undefined;
  readonly difference: BaseDifference | undefined;
}

type Found = Explanation & Partial<SignatureExplanation>;

/**
 * Says why a signature is refused, and what its signer has to change. Runs httpSignatureVerify's own check; for a mismatch it tries near
 * misses with the public key, at most `maxAttempts`. For operators, never on the request path: it takes up to seconds, one explanation at a
 * time in a process, yielding about every 20 ms. Claims no nonce, so a replay `verifies`. Rejects with a TypeError on a bad option.
 */
export async function explainSignature(
  request: ExplainedRequest,
  options: ExplainSignatureOptions,
): Promise<SignatureExplanation> {
  const { own, check } = readExplainOptions("explainSignature", options);
  assertRequest(request);
  const body = knownBody(request);
  const received = receivedOf(request, body);
  // The check below reports that the store failed.
  const keys = await own.keys(keyidsOf(received)).catch(() => undefined);
  const known = { ...own, keys: keys?.known ?? new Map<string, VerificationKey>() };
  const judged = {
    request: received,
    body,
    own: known,
    check: await withPolicy(received, check(keys)),
    code: undefined,
  };
  const context = { ...judged, input: signatureOf(judged)?.input };
  // No I/O from here on: a slow key store does not hold up the next explanation.
  return pace.run(() => explainJudged(context));
}

/** The check with the policy of its partner in the place of the function; as it is where there is no usable one. */
async function withPolicy(
  request: ReceivedRequest,
  check: HttpSignatureVerifyOptions,
): Promise<HttpSignatureVerifyOptions> {
  const { policy: lookUp, ...common } = check;
  if (lookUp === undefined) return check;
  try {
    for (const signature of listSignatures(parseSignatures(request))) {
      // oxlint-disable-next-line no-await-in-loop -- at most four, until one has a policy
      const policy = await lookUp(signature);
      if (policy === undefined || policy === null) continue;
      const found = { ...common, ...policy };
      assertVerifyOptions(found, "explainSignature");
      return found;
    }
  } catch {
    // The check itself reports what is wrong.
  }
  return check;
}

async function explainJudged(context: SignatureContext): Promise<SignatureExplanation> {
  const code = await verdictOn(context);
  await pace.rest();
  const found: Found =
    code === undefined
      ? { ...verifies("The signature verifies; nonces are not looked at."), expectedBase: baseShown(context) }
      : await (isTimeCode(code) ? explainTime : explainCode)({ ...context, code });
  return { attempts: 0, expectedBase: undefined, signerBase: undefined, difference: undefined, ...found };
}

function baseShown(context: SignatureContext): string | undefined {
  const base = context.input && baseOfMessage(context, context.input);
  return base && visibleBase(base);
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
    body: async () => {
      if (body === undefined) throw new BodyNotKnown();
      return body;
    },
  };
}

/** In place of a refusal's code: only the unknown body is left to check. */
const bodyNotKnown = "body-not-known";

class BodyNotKnown extends Error {}

const someByte = new Uint8Array(1);

async function verdictOn(context: SignatureContext): Promise<string | undefined> {
  const { request, body, check, input } = context;
  // Whether an unsigned body is refused does not depend on its bytes.
  const isSignedBody = input?.components.some(({ name }) => name === "content-digest") === true;
  const isSpare = body === undefined && !isSignedBody;
  const judged = isSpare ? { ...request, body: async () => someByte } : { ...request };
  try {
    await recheckHttpSignature(judged, check);
    return undefined;
  } catch (error) {
    if (error instanceof BodyNotKnown) return bodyNotKnown;
    if (isGuardError(error)) return error.code;
    throw error;
  }
}

function isTimeCode(code: string): boolean {
  return code === "signature-expired" || code === "created-in-future";
}

/** A captured request is always late, so this also looks for what else is wrong. */
async function explainTime(context: SignatureContext): Promise<Found> {
  const first = explainPolicy(context);
  const created = numberOf(context.input, "created");
  if (created === undefined) return first;
  const then = { ...context, check: { ...context.check, clock: () => created * 1000 } };
  const code = await verdictOn(then);
  if (code === undefined || isTimeCode(code)) return first;
  const second = await explainCode({ ...then, code });
  const details = [`Apart from the time: ${second.sentence}`, ...second.details];
  return { ...second, ...first, details: [...first.details, ...details] };
}

async function explainCode(context: SignatureContext): Promise<Found> {
  const { code = "", request, body } = context;
  if (code === bodyNotKnown) {
    const found = await digestExplanation(request, undefined);
    return { ...found, details: ["The signature fits the fields of the request."] };
  }
  if (code.startsWith("content-digest-")) return digestExplanation(request, body);
  if (code === "signature-missing") return explanation(explainMissingSignature(context), code);
  if (code === "field-invalid" || code === "field-limit") return explainFields(context);
  const signature = signatureOf(context);
  const base = signature === undefined ? undefined : baseOfMessage(context, signature.input);
  if (signature !== undefined && isKeyCode(code)) return explainKey(context, signature, base);
  const key = context.own.keys.get(textOf(context.input, "keyid") ?? "");
  const isMismatch = code === "signature-mismatch" || code === "signature-malformed";
  return isMismatch && signature !== undefined && base !== undefined && key !== undefined
    ? explainMismatch(context, signature, rightDraft(base, key, signature.signature))
    : explainPolicy(context);
}

const maxBaseBytes = 16_384;

async function explainMismatch(
  context: SignatureContext,
  signature: LabelledSignature,
  right: Draft,
): Promise<Found> {
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
  const shown = {
    attempts,
    expectedBase: visibleBase(base),
    signerBase: own.signerBase === undefined ? undefined : visibleBase(own.signerBase),
  };
  if (found !== undefined) return { ...explanation(remedyOfMisses(found.misses), code), ...shown };
  const difference = own.signerBase === undefined ? undefined : differenceOf(base, own.signerBase);
  const details = [
    ...(body === undefined ? ["The body was not read: what may have been made of it was not tried."] : []),
    ...assumedServer(base),
  ];
  const unfound = explanation(explainByBases(own.signerBase, right, difference), code, details);
  return { ...unfound, ...shown, difference };
}

/** Only the signer knows which server it meant: a capture behind a proxy may name another one. */
function assumedServer(base: string): string[] {
  const [, name, value] = /^"(@authority|@target-uri)": (.*)$/m.exec(base) ?? [];
  if (name === undefined || value === undefined) return [];
  return [`${quoted(name)} was taken to be ${quoted(value)}; for another server give its origin (--origin).`];
}

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
  const message = messageOf(context);
  const { authority = fieldLines(request, ":authority")[0] ?? fieldLines(request, "host")[0] } = message;
  return {
    ...message,
    authority,
    body,
    label,
    member: memberText(fieldLines(request, "signature-input").join(", "), label),
    pathPrefixes: own.pathPrefixes,
    keys: own.keys,
    otherSignatures: others,
    right,
  };
}

/** No near miss fits: compares the bases, or blames the key. */
function explainByBases(
  signerBase: string | undefined,
  { key, signature, verify }: Draft,
  difference: BaseDifference | undefined,
): Remedy {
  const keyid = quoted(key.keyid);
  if (signerBase === undefined) return remedy("signature-unexplained", { keyid });
  if (difference === undefined) return remedy("signature-of-other-key", { keyid });
  const { component, column, line } = difference;
  const place = `${component} differs at character ${column} of line ${line}`;
  const isOfIt = verify(key, Buffer.from(signerBase, "utf8"), signature);
  return remedy(isOfIt ? "base-differs" : "base-and-signature-differ", { place });
}
