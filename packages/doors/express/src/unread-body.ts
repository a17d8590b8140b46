import { createRequestFact, type RequestFact } from "@countersign/core";
import type { GuardRequest, GuardResponse, OverHttp2 } from "./types.ts";

const maxBytes = 16 * 1024 ** 2;
const maxMs = 10_000;
const lookMs = 100;
// RFC 9113 section 8.1: the answer was complete, the rest of the request is not needed.
const noError = 0;

const bodies: RequestFact<"bounded" | "draining" | "lifted"> = createRequestFact();

/**
 * Discards the rest of a refused request's body from the answer on, or from when the stream is resumed, and closes the connection after
 * 10 seconds or about 16 MiB. Otherwise a half-read body would block the connection's next request for ever.
 */
export function boundUnreadBody(req: GuardRequest & OverHttp2, res: GuardResponse): void {
  // An imitation of a request may have no such member, and no stream to read from.
  const { complete }: { readonly complete?: unknown } = req;
  if (complete !== false || bodies.get(req) !== undefined) return;
  bodies.set(req, "bounded");
  const { stream } = req;
  if (req.httpVersionMajor >= 2 && stream !== undefined) {
    // The response says that it has finished only when the stream is closed, which an unfinished request never is by itself.
    // In a later turn of the event loop: RST_STREAM overtakes an answer that is still to be written.
    stream.once("finish", () => setImmediate(() => stream.close(noError)));
    return;
  }
  const begin = (): void => {
    req.off("resume", flow);
    if (bodies.get(req) !== "bounded") return;
    bodies.set(req, "draining");
    drain(req);
  };
  // Express's own answer to an error waits for the end of the body. Whom an app lets read it all the same gets the whole.
  const flow = (): void => {
    if (req.listenerCount("data") === 0) begin();
  };
  res.once("finish", begin);
  req.on("resume", flow);
}

/**
 * For an answer that must look like that of an unknown route: lets the body flow away as it does there, where Node's
 * `server.requestTimeout` is its only bound.
 */
export function releaseUnreadBody(req: GuardRequest): void {
  bodies.set(req, "lifted");
  if (req.readableDidRead && !req.readableEnded) req.resume();
}

function drain(req: GuardRequest): void {
  const { socket } = req;
  const startBytes = socket.bytesRead;
  const endMs = performance.now() + maxMs;
  req.resume();
  // Node emits nothing for the bytes that it discards.
  const timer = setInterval(() => {
    const isOver = req.complete || socket.destroyed;
    const isTooMuch = socket.bytesRead - startBytes > maxBytes || performance.now() >= endMs;
    if (!isOver && isTooMuch) socket.destroy();
    if (isOver || isTooMuch) clearInterval(timer);
  }, lookMs);
  timer.unref();
}
