import type { Response } from "express";
import { messageOf } from "../thrown.ts";

/** Tells those who listen over HTTP what has changed, as server-sent events. */
export interface ChangeStream {
  /** Something has changed: of deliveries by number; of the rest by name. New deliveries are found without. */
  readonly changed: (what: { readonly deliveries?: readonly number[]; readonly kind?: ChangeKind }) => void;
  /** Answers a request with the stream. */
  readonly open: (res: Response) => void;
  /** Ends every stream. */
  readonly close: () => void;
}

/** What else than a delivery can change. */
export type ChangeKind = "buyers" | "sellers" | "payment-requests" | "payouts" | "endpoints";

/** Reads what is told; `ids` are those of deliveries that are known to have changed. */
export type ReadChanges = (ids: readonly number[], kinds: readonly ChangeKind[]) => object;

// A burst is one event; who cannot keep up is let go, and reads anew.
const pauseMs = 100;
const heartbeatMs = 15_000;
const backlogBytes = 1_048_576;

/** Makes a stream that reads with `read` when there is something to tell and somebody to tell it to. */
export function createChangeStream(read: ReadChanges): ChangeStream {
  const listeners = new Set<Response>();
  const ids = new Set<number>();
  const kinds = new Set<ChangeKind>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const write = (text: string): void => {
    for (const res of listeners) {
      res.write(text);
      if (res.writableLength > backlogBytes) res.destroy();
    }
  };
  const tell = (): void => {
    timer = undefined;
    const [deliveries, others] = [[...ids], [...kinds]];
    ids.clear();
    kinds.clear();
    if (listeners.size === 0 || isClosed) return;
    try {
      write(`event: change\ndata: ${JSON.stringify(read(deliveries, others))}\n\n`);
    } catch (error) {
      process.emitWarning(`the sandbox's stream paused: ${messageOf(error)}`, "CountersignWarning");
    }
  };
  const heartbeat = setInterval(() => write(":\n\n"), heartbeatMs);
  heartbeat.unref();

  return {
    changed({ deliveries = [], kind }) {
      for (const id of deliveries) ids.add(id);
      if (kind !== undefined) kinds.add(kind);
      if (timer === undefined && !isClosed) timer = setTimeout(tell, pauseMs);
    },
    open(res) {
      res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      res.write(":\n\n");
      listeners.add(res);
      res.on("close", () => listeners.delete(res));
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      clearInterval(heartbeat);
      for (const res of listeners) res.end();
    },
  };
}
