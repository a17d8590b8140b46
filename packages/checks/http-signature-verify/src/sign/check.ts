import { createContentDigest } from "@countersign/content-digest";
import {
  type HeaderFields,
  inTime,
  type OptionOwner,
  publishFailure,
  readOptions,
  type Replacement,
} from "@countersign/core/internal";
import { type RequestMessage, signAsync } from "@countersign/http-message-signatures";
import { receiptComponents } from "@countersign/http-message-signatures/internal";
import { verifiedMessage, verifiedSignature } from "../check.ts";
import { type ResolvedSignOptions, type SignResponseOptions, table } from "./options.ts";

/** Why another answer replaced one that could not be signed; events and notices have these codes. */
export type HttpSignatureSignCode = "answer-too-large" | "answer-unsendable" | "signing-failed";

export const factoryName = "signResponse";

interface AnswerToSign {
  readonly status: number;
  /** Names and values alternate. */
  readonly rawHeaders: readonly string[];
  /** Undefined when it was too large to keep. */
  readonly body: Uint8Array | undefined;
}

/** Header fields to add, none if the answer is not signed; or its replacement. */
type SignedAnswer = { readonly headers: HeaderFields } | Replacement;

/** `subject` is the request as its framework knows it. */
export interface SignAnswer {
  /**
   * Signs the answer to a verified request; leaves any other as it is. What cannot be signed is replaced: 503 where the signer fails or is
   * late, 500 over the limit; a notice, or a line on stderr, says why. Does not reject.
   */
  (subject: object, answer: AnswerToSign): Promise<SignedAnswer>;
  /** Whether an answer that begins now will be signed; any other need not be kept. */
  signs(this: void, subject: object): boolean;
  /** How much of a body to keep: the option `limit`. */
  readonly limitBytes: number;
}

/**
 * Makes an answer the receipt of one request (RFC 9421 section 2.4): signs the answer's status, media type, content coding, Location and
 * Content-Digest with the request's method, path, digest and signature. Throws an OptionError on a bad option.
 */
export function responseSigner(options: SignResponseOptions, owner: OptionOwner = factoryName): SignAnswer {
  const read = readOptions(owner, table, options);
  const { limit, signTimeoutMs } = read;
  const late = (): Error => new Error(`the signer gave no signature within ${signTimeoutMs} ms`);
  const sign = async (subject: object, { status, rawHeaders, body }: AnswerToSign): Promise<SignedAnswer> => {
    const request = verifiedMessage(subject);
    if (request === undefined) return { headers: {} };
    if (body === undefined || body.length > limit) {
      publish("answer-too-large", `an answer has more than ${limit} bytes: it is 500 instead`, subject);
      return { status: 500 };
    }
    const requestLabel = verifiedSignature(subject)?.label ?? "";
    const digest = createContentDigest(body);
    const lines = [...withoutDigest(rawHeaders), "Content-Digest", digest];
    try {
      const signing = receiptOf({ status, rawHeaders: lines, request }, requestLabel, read);
      const { signatureInput, signature } = await inTime(signing, signTimeoutMs, late);
      return {
        headers: { "Content-Digest": digest, "Signature-Input": signatureInput, Signature: signature },
      };
    } catch (error) {
      publish("signing-failed", "an answer could not be signed: it is 503 instead", subject, error);
      return { status: 503, retryAfterSeconds: 1 };
    }
  };
  return Object.assign(sign, {
    signs: (subject: object) => verifiedMessage(subject) !== undefined,
    limitBytes: limit,
  });
}

interface Answer {
  readonly status: number;
  readonly rawHeaders: readonly string[];
  readonly request: RequestMessage;
}

function receiptOf(
  answer: Answer,
  requestLabel: string,
  { signer, components, label, tag, clock }: ResolvedSignOptions,
): ReturnType<typeof signAsync> {
  const bound = receiptComponents(answer, requestLabel);
  return signAsync(answer, {
    signer,
    // Where the answer has a Location, the receipt covers it by itself.
    components: [...bound, ...components.filter((component) => !bound.includes(component))],
    label,
    tag,
    created: Math.floor(clock() / 1000),
    parameters: ["created", "keyid", "alg", ...(tag === undefined ? [] : (["tag"] as const))],
  });
}

// The handler's own digest may cover other bytes.
function withoutDigest(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.filter((_, index) => rawHeaders[index - (index % 2)]?.toLowerCase() !== "content-digest");
}

export function publish(code: HttpSignatureSignCode, message: string, req: object, error?: unknown): void {
  publishFailure({ guard: factoryName, code, message, req, error });
}
