import type { RequestMessage } from "@countersign/http-message-signatures";
import { sampleCovered, sampleHeaders, signByHand, signedRequest, type Draft } from "./hand-signer.ts";

/** A good request as text; the hostile ones differ from it in one thing. */
export const good: ReturnType<typeof signByHand> = signByHand();

/** The sample request with these two fields; undefined leaves one out. */
export function withFields(input: string | undefined, signature: string | undefined): RequestMessage {
  return {
    method: "POST",
    target: "/api/v1/transaction",
    rawHeaders: [
      ...sampleHeaders,
      ...(input === undefined ? [] : ["Signature-Input", input]),
      ...(signature === undefined ? [] : ["Signature", signature]),
    ],
  };
}

export const withParameters = (parameters: Draft["parameters"]): RequestMessage =>
  signedRequest({ parameters });

/** Rightly signed over the value of X-Note, sent with these lines of it. */
export const withNote = (value: string, ...lines: string[]): RequestMessage =>
  signedRequest({
    headers: [...sampleHeaders, ...lines.flatMap((line) => ["X-Note", line])],
    covered: [...sampleCovered, ['"x-note"', value]],
  });
