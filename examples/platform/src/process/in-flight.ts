import type { RequestHandler, Response } from "express";

/** What owns keys of the store: the payout endpoint, the handler of events. */
interface KeyOwner {
  drain(options: { readonly timeoutMs: number }): Promise<unknown>;
}

/** The requests that are being answered and the keys that are owned, so that a shutdown can wait for them. */
export interface InFlight {
  readonly middleware: RequestHandler;
  readonly draining: boolean;
  /** Lets drain() wait for the keys of this one, too. */
  owns(owner: KeyOwner): void;
  /**
   * From now on each answer ends its connection; resolves when none is left, and every key is recorded as what it is: of a payout
   * whose record the store did not take at once, a process that just ends would leave a key in doubt.
   */
  drain(timeoutMs: number): Promise<void>;
}

export function createInFlight(): InFlight {
  const responses = new Set<Response>();
  const owners: KeyOwner[] = [];
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
    owns(owner) {
      owners.push(owner);
    },
    async drain(timeoutMs) {
      draining = true;
      for (const res of responses) {
        if (!res.headersSent) res.setHeader("Connection", "close");
      }
      await new Promise<void>((resolve) => {
        onEmpty = resolve;
        if (responses.size === 0) resolve();
      });
      await Promise.all(owners.map((owner) => owner.drain({ timeoutMs })));
    },
  };
}
