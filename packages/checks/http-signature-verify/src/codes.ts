import type { MessageSignatureErrorCode } from "@countersign/http-message-signatures";

/** The codes of the refusals of signatures; those of body and digest are in RawBodyCode and ContentDigestCode. */
export type HttpSignatureCode =
  | MessageSignatureErrorCode
  | "body-not-covered"
  | "key-store-unavailable"
  | "method-override"
  | "nonce-replayed"
  | "nonce-store-unavailable"
  | "query-not-covered";
