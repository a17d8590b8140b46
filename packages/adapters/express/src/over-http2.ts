import { STATUS_CODES } from "node:http";
import type { GuardResponse } from "./types.ts";

/** True for a response of node:http2's compatibility API. */
export function isOverHttp2(res: GuardResponse): boolean {
  return res.req.httpVersionMajor >= 2;
}

/** Sets a status with its usual message. HTTP/2 has none (RFC 9113 section 8.3.2), and Node warns of the first read or write. */
export function replaceStatus(res: GuardResponse, status: number): void {
  res.statusCode = status;
  if (!isOverHttp2(res)) res.statusMessage = STATUS_CODES[status] ?? "";
}
