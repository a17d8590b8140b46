import type { RequestHandler, Response } from "express";

/** The requests that are being answered, so that a shutdown can wait for them. */
export interface InFlight {
  readonly middleware: RequestHandler;
  readonly draining: boolean;
  /** From now on each answer ends its connection; resolves when none is left. */
  drain(): Promise<void>;
}

export function createInFlight(): InFlight {
  const responses = new Set<Response>();
  let draining = false;
  let onEmpty: (() => void) | undefined;
  return {
    middleware(_req, res, next) {
      responses.add(res);
      if (draining) res.setHeader("Connection", "close");
      res.once("close", () => {
        responses.delete(res);
        if (responses.size === 0) onEmpty?.();
      });
      next();
    },
    get draining() {
      return draining;
    },
    drain() {
      draining = true;
      for (const res of responses) {
        if (!res.headersSent) res.setHeader("Connection", "close");
      }
      return new Promise((resolve) => {
        onEmpty = resolve;
        if (responses.size === 0) resolve();
      });
    },
  };
}
