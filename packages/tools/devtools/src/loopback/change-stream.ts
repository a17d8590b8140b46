import type { Response } from "express";
import { readThrown } from "./problem.ts";

export interface ChangeStream<Kind extends string> {
  /** Announces changes: requests or deliveries by number, anything else by name. */
  readonly changed: (what: { readonly ids?: readonly number[]; readonly kind?: Kind }) => void;
  readonly open: (res: Response) => void;
  readonly close: () => void;
}

export interface ChangeStreamInit {
  /** The service in a warning: "the sandbox". */
  readonly service: string;
  readonly counts: () => object;
}

// A burst is one event. A client that cannot keep up is disconnected, and reloads.
const pauseMs = 100;
const heartbeatMs = 15_000;
const backlogBytes = 1_048_576;

export function createChangeStream<Kind extends string>({
  service,
  counts,
}: ChangeStreamInit): ChangeStream<Kind> {
  const listeners = new Set<Response>();
  const ids = new Set<number>();
  const kinds = new Set<Kind>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const write = (text: string): void => {
    for (const res of listeners) {
      res.write(text);
      if (res.writableLength > backlogBytes) res.destroy();
    }
  };
  const publish = (): void => {
    timer = undefined;
    const change = { changed: [...ids], kinds: [...kinds] };
    ids.clear();
    kinds.clear();
    if (listeners.size === 0 || isClosed) return;
    try {
      write(`event: change\ndata: ${JSON.stringify({ counts: counts(), ...change })}\n\n`);
    } catch (error) {
      const { message } = readThrown(error);
      process.emitWarning(`${service}'s stream paused: ${message}`, "CountersignWarning");
    }
  };
  const heartbeat = setInterval(() => write(":\n\n"), heartbeatMs);
  heartbeat.unref();

  return {
    changed({ ids: numbers = [], kind }) {
      for (const id of numbers) ids.add(id);
      if (kind !== undefined) kinds.add(kind);
      if (timer === undefined && !isClosed) timer = setTimeout(publish, pauseMs);
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
