import { assertReadableBody, isSentAsIs, type HeaderLines } from "@countersign/core/door";
import { refusal } from "./refusals.ts";

/** A framework's request, or its own around Node's. */
export interface MaybeRaw {
  readonly rawHeaders?: unknown;
  readonly raw?: unknown;
}

export function rawHeadersOf(req: MaybeRaw): HeaderLines | undefined {
  const { rawHeaders } = req.rawHeaders === undefined ? Object(req.raw) : req;
  return Array.isArray(rawHeaders) ? { rawHeaders } : undefined;
}

/** Throws 415 for a content coding, whose bytes a parser has undone and captureRawBody leaves out; else 500, the app's mistake. */
export function refuseUncaptured(req: MaybeRaw): never {
  const raw = rawHeadersOf(req);
  if (raw !== undefined && !isSentAsIs(raw)) assertReadableBody(raw, Number.MAX_SAFE_INTEGER);
  throw refusal("fingerprint-missing");
}
