export type MessageSignatureErrorCode =
  | "alg-invalid"
  | "alg-mismatch"
  | "authority-conflict"
  | "component-duplicate"
  | "component-forbidden"
  | "component-name-invalid"
  | "component-parameter-unsupported"
  | "component-required"
  | "component-unsupported"
  | "components-empty"
  | "covered-field-invalid"
  | "covered-field-missing"
  | "covered-field-repeated"
  | "created-in-future"
  | "created-invalid"
  | "expires-invalid"
  | "field-invalid"
  | "field-limit"
  | "key-mismatch"
  | "key-retired"
  | "key-revoked"
  | "key-scope"
  | "key-unknown"
  | "keyid-invalid"
  | "method-invalid"
  | "nonce-invalid"
  | "parameter-forbidden"
  | "signature-ambiguous"
  | "signature-expired"
  | "signature-malformed"
  | "signature-mismatch"
  | "signature-missing"
  | "signature-request-refused"
  | "tag-invalid"
  | "tag-mismatch"
  | "target-invalid"
  | "window-too-long";

/** Its text holds nothing of the message beyond names of components and labels. */
export class MessageSignatureError extends Error {
  readonly code: MessageSignatureErrorCode;

  constructor(code: MessageSignatureErrorCode, message: string) {
    super(message);
    this.name = "MessageSignatureError";
    this.code = code;
  }
}
