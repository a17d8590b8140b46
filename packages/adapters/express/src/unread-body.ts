import { createRequestFact, type RequestFact } from "@countersign/core";
import type { GuardRequest, GuardResponse, OverHttp2 } from "./types.ts";

const maxBytes = 16 * 1024 ** 2;
const maxMs = 10_000;
const lookMs = 100;
// RFC 9113 section 8.1: a complete answer, the rest of the request is not needed.
const noError = 0;

const bodies: RequestFact<"bounded" | "draining" | "lifted"> = createRequestFact();

/**
 * Discards the rest of a refused body from the answer or the stream's resumption on; closes the connection after 10 seconds or about
 * 16 MiB. Unread, it would block the connection's next request for ever.
 */
export function boundUnreadBody(req: GuardRequest & OverHttp2, res: GuardResponse): void {
  // An imitation of a request may have no such member, and no stream to read from.
  const { complete }: { readonly complete?: unknown } = req;
  if (complete !== false || bodies.get(req) !== undefined) return;
  bodies.set(req, "bounded");
  const { stream } = req;
  if (req.httpVersionMajor >= 2 && stream !== undefined) {
    // The response finishes only when the stream is closed, which an unfinished request never does by itself. In a later turn of the event
    // loop: RST_STREAM overtakes an unwritten answer.
    stream.once("finish", () => setImmediate(() => stream.close(noError)));
    return;
  }
  const begin = (): void => {
    req.off("resume", flow);
    if (bodies.get(req) !== "bounded") return;
    bodies.set(req, "draining");
    drain(req);
  };
  // Express's own error answer waits for the end of the body. A reader that an app still lets in gets the whole.
  const flow = (): void => {
    if (req.listenerCount("data") === 0) begin();
  };
  res.once("finish", begin);
  req.on("resume", flow);
}

/** Lets the body flow away, bounded only by Node's `server.requestTimeout`. An unknown route, which the answer imitates, does the same. */
export function releaseUnreadBody(req: GuardRequest): void {
  bodies.set(req, "lifted");
  if (req.readableDidRead && !req.readableEnded) req.resume();
}

function drain(req: GuardRequest): void {
  const { socket } = req;
  const startBytes = socket.bytesRead;
  const endMs = performance.now() + maxMs;
  req.resume();
  // Node emits nothing for discarded bytes.
  const timer = setInterval(() => {
    const isOver = req.complete || socket.destroyed;
    const isTooMuch = socket.bytesRead - startBytes > maxBytes || performance.now() >= endMs;
    if (!isOver && isTooMuch) socket.destroy();
    if (isOver || isTooMuch) clearInterval(timer);
  }, lookMs);
  timer.unref();
}
