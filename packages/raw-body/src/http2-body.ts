import type { ServerHttp2Stream } from "node:http2";
import { setImmediate as turn, setTimeout as delay } from "node:timers/promises";
import type { GuardRequest } from "@countersign/guard";

/** With the stream of the compatibility API of node:http2. */
interface OverHttp2 {
  readonly stream?: ServerHttp2Stream | undefined;
}

const graceMs = 5;

/**
 * Whether the client left before its request was complete. The stream of an HTTP/2 request that was cut by RST_STREAM ends for its
 * reader like one that had END_STREAM (RFC 9113 section 8.1), and the request is not `readableAborted`.
 */
export function isCut(req: GuardRequest & OverHttp2): boolean {
  return req.readableAborted || (req.httpVersionMajor >= 2 && req.stream?.closed === true);
}

/**
 * Whether only END_STREAM says that the body is complete. Node's own HTTP/2 client sends it also when its request is closed half
 * way, with RST_STREAM right behind; a Content-Length would have shown that something is missing.
 */
export function mayBeCutLate({ httpVersionMajor, stream, headers }: GuardRequest & OverHttp2): boolean {
  return (
    httpVersionMajor >= 2 && stream?.endAfterHeaders === false && headers["content-length"] === undefined
  );
}

/** Waits as long as a RST_STREAM takes that was sent right behind END_STREAM. */
export async function untilNotCutLate(req: GuardRequest & OverHttp2): Promise<void> {
  if (isCut(req)) return;
  await delay(graceMs);
  // In a busy process the time is over before anything was read: between two turns of the event loop it is.
  await turn();
  await turn();
}
