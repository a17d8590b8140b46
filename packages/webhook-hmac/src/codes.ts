/** The codes of the refusals of payload signatures; those of the body itself are in RawBodyCode. */
export type PayloadSignatureCode =
  | "payload-signature-malformed"
  | "payload-signature-missing"
  | "payload-signature-wrong"
  | "secrets-unavailable";
