/** Why the bytes of a body cannot be had, whichever door has received the request. */
export type BodyCode =
  | "body-already-consumed"
  | "body-length-mismatch"
  | "body-too-large"
  | "content-encoding-unsupported"
  | "request-aborted"
  | "transfer-coding-unsupported";

/** Why bytes are not JSON that any two readers read alike. */
export type JsonCode =
  | "json-duplicate-key"
  | "json-empty"
  | "json-forbidden-key"
  | "json-invalid"
  | "json-number-range"
  | "json-too-deep"
  | "json-too-many-values";

/** The codes of the refusals that checks and doors have in common. */
export type CoreCode = BodyCode | JsonCode | "checked-after-claim" | "header-lines-dropped" | "host-repeated";
