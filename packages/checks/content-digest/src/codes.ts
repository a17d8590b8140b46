/** The codes of the refusals of digests; those of the body itself are in RawBodyCode. */
export type ContentDigestCode =
  | "content-digest-invalid"
  | "content-digest-mismatch"
  | "content-digest-missing"
  | "content-digest-unsupported"
  | "repr-digest-invalid"
  | "repr-digest-mismatch"
  | "repr-digest-missing"
  | "repr-digest-unsupported";
