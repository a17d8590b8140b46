import { STATUS_CODES, type OutgoingHttpHeader } from "node:http";
import type { GuardResponse } from "@countersign/guard";

/** The head of a response at one moment. */
export interface ResponseHead {
  readonly statusCode: number;
  readonly statusMessage: string;
  /** By name in lower case. */
  readonly fields: readonly (readonly [name: string, value: OutgoingHttpHeader])[];
}

/** Remembers status and header fields. */
export function copyHead(res: GuardResponse): ResponseHead {
  const fields: [string, OutgoingHttpHeader][] = [];
  for (const name of res.getHeaderNames()) {
    const value = res.getHeader(name);
    // Node appends to a list in place.
    if (value !== undefined) fields.push([name, Array.isArray(value) ? [...value] : value]);
  }
  return { statusCode: res.statusCode, statusMessage: res.statusMessage, fields };
}

/** Makes the head what it was. Fields that did not change keep their spelling. */
export function restoreHead(res: GuardResponse, { statusCode, statusMessage, fields }: ResponseHead): void {
  res.statusCode = statusCode;
  res.statusMessage = statusMessage;
  const kept = new Map(fields);
  for (const name of res.getHeaderNames()) if (!kept.has(name)) res.removeHeader(name);
  for (const [name, value] of kept) if (res.getHeader(name) !== value) res.setHeader(name, value);
}

/** What leaves the process instead of the handler's answer. */
export interface Replacement {
  readonly status: number;
  readonly retryAfterSeconds?: number | undefined;
}

const describesBody =
  /^(?:content-|transfer-encoding$|trailer$|etag$|last-modified$|accept-ranges$|location$)/;

/**
 * Writes the head of problem details (RFC 9457) and returns its body. Of the header fields only those stay that were there
 * before the handler, which had an answer in mind that is not given.
 */
export function replaceHead(
  res: GuardResponse,
  { status, retryAfterSeconds }: Replacement,
  namesBefore: readonly string[],
): string {
  for (const name of res.getHeaderNames()) {
    if (describesBody.test(name) || !namesBefore.includes(name)) res.removeHeader(name);
  }
  const title = STATUS_CODES[status] ?? "Error";
  const body = JSON.stringify({ type: "about:blank", title, status });
  res.statusCode = status;
  res.statusMessage = title;
  if (retryAfterSeconds !== undefined) res.setHeader("Retry-After", String(retryAfterSeconds));
  res.setHeader("Cache-Control", "no-store");
  res.setHeader("Content-Type", "application/problem+json");
  res.setHeader("Content-Length", Buffer.byteLength(body));
  return body;
}
