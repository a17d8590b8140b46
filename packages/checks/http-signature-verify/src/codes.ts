import type { MessageSignatureErrorCode } from "@countersign/http-message-signatures";

/** Refusals of body and digest are in RawBodyCode and ContentDigestCode. */
export type HttpSignatureCode =
  | MessageSignatureErrorCode
  | "body-not-covered"
  | "key-store-unavailable"
  | "key-unusable"
  | "method-override"
  | "nonce-replayed"
  | "nonce-store-unavailable"
  | "policy-unknown"
  | "policy-unusable"
  | "query-not-covered";
