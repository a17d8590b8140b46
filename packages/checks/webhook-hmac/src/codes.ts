/** The codes of the refusals of payload signatures; those of the body itself are in RawBodyCode. */
export type PayloadSignatureCode =
  | "payload-id-malformed"
  | "payload-id-missing"
  | "payload-signature-malformed"
  | "payload-signature-missing"
  | "payload-signature-wrong"
  | "payload-timestamp-expired"
  | "payload-timestamp-future"
  | "payload-timestamp-malformed"
  | "payload-timestamp-missing"
  | "secrets-unavailable";
