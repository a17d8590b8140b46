import {
  createSignatureBase,
  parseSignatureInput,
  type RequestMessage,
} from "@countersign/http-message-signatures";

/**
 * The text that a sender has to have signed of this request, line by line:
 * for a test, never for a log.
 */
export function baseOf(
  request: RequestMessage,
  signatureInput: string,
): string {
  const [member] = parseSignatureInput(signatureInput);
  if (member === undefined) throw new Error("Signature-Input has no member");
  const [, input] = member;
  return createSignatureBase(request, input);
}
