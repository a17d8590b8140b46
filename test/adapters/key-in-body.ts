import { capturedRawBody } from "@countersign/core/internal";

/** The member `key` of the JSON that was captured of a request. */
export function keyInBody(native: object): unknown {
  return JSON.parse(String(capturedRawBody(native))).key;
}
