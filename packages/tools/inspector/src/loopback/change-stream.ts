import type { Response } from "express";
import { messageOf } from "./problem.ts";

/** Tells those who listen over HTTP what has changed, as server-sent events. */
export interface ChangeStream<Kind extends string> {
  /** Something has changed: of what the stream is about by number; of the rest by name. What is new is found without. */
  readonly changed: (what: { readonly ids?: readonly number[]; readonly kind?: Kind }) => void;
  /** Answers a request with the stream. */
  readonly open: (res: Response) => void;
  /** Ends every stream. */
  readonly close: () => void;
}

/** What a stream needs. */
export interface ChangeStreamInit {
  /** The service in a warning: "the sandbox". */
  readonly service: string;
  /** How many things there are by state. Asked when there is something to tell, and somebody to tell it to. */
  readonly counts: () => object;
}

// A burst is one event; who cannot keep up is let go, and reads anew.
const pauseMs = 100;
const heartbeatMs = 15_000;
const backlogBytes = 1_048_576;

/** Makes a stream, which costs nothing but what is noted while nobody listens. */
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
      process.emitWarning(`${service}'s stream paused: ${messageOf(error)}`, "CountersignWarning");
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
