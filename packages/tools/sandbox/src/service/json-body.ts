import { isUtf8 } from "node:buffer";
import { json, type RequestHandler } from "express";
import { statusOfThrown } from "@countersign/inspector/loopback";
import { SandboxError } from "./sandbox-error.ts";

// Decoded, the bytes of another encoding would be U+FFFD: a password that nobody has.
const readJson = json({
  limit: 1_048_576,
  inflate: false,
  verify(_req, _res, bytes) {
    if (!isUtf8(bytes)) throw new SandboxError("invalid-request", "the JSON of the body is not in UTF-8");
  },
});

/** Reads a JSON body of up to 1 MiB into `req.body`; any other media type is refused. */
export const jsonBody: readonly RequestHandler[] = [
  (req, _res, next) => {
    // Clients say that a POST without a body is 0 bytes long, and give it no type.
    if (req.get("Content-Length") !== "0" && req.is("application/json") === false) {
      next(new SandboxError("media-type-unsupported", "send application/json"));
    } else {
      next();
    }
  },
  readJson,
];

/** Of what the body parser found in a request. Its messages can quote the body, and are not passed on. */
export function bodyError(thrown: unknown): SandboxError | undefined {
  const status = statusOfThrown(thrown);
  if (status === 413) return new SandboxError("body-too-large", "the body is longer than 1 MiB");
  if (status !== 415) return undefined;
  return new SandboxError("media-type-unsupported", "send application/json, not encoded");
}
