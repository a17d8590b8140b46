/** Why an adapter cannot give the bytes of a body. */
export type BodyCode =
  | "body-already-consumed"
  | "body-length-mismatch"
  | "body-too-large"
  | "content-encoding-unsupported"
  | "request-aborted"
  | "transfer-coding-unsupported";

/** Why bytes are not JSON that all readers read alike. */
export type JsonCode =
  | "json-duplicate-key"
  | "json-empty"
  | "json-forbidden-key"
  | "json-invalid"
  | "json-lone-surrogate"
  | "json-number-range"
  | "json-too-deep"
  | "json-too-many-values";

/** Why a captured body is not parsed as JSON. */
export type JsonBodyCode = JsonCode | "media-type-unsupported" | "raw-body-missing";

/** The refusal codes that checks and adapters share. */
export type CoreCode = BodyCode | JsonCode | "checked-after-claim" | "header-lines-dropped" | "host-repeated";
