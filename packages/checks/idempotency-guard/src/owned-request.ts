import type { AttemptEnd, LeasedRun, WorkEnd } from "@countersign/idempotency/internal";
import type { GivenAnswer } from "./replay.ts";
import type { RequestIdempotency } from "./request-idempotency.ts";

/** How the response of a handler has ended, and the whole of it where responses are kept. */
export type HandlerEnd = AttemptEnd & Pick<WorkEnd, "handler"> & { readonly given?: GivenAnswer | undefined };

interface OwnedRequestInit {
  /** The key as the caller sent it. */
  readonly sentKey: string;
  /** How much of a response's body is kept, in bytes. Undefined where no response is kept. */
  readonly keptBytes: number | undefined;
  readonly leaseMs: number;
}

/** A request that owns its key by a lease, for the adapter that runs its handler. */
export class OwnedRequest {
  /** For the handler. */
  readonly handle: RequestIdempotency;
  readonly run: LeasedRun;
  readonly keptBytes: number | undefined;
  /** How long an adapter may read a response before the key is done, in milliseconds: half of the lease. */
  readonly readMs: number;
  #hasResponded = false;

  constructor(run: LeasedRun, { sentKey, keptBytes, leaseMs }: OwnedRequestInit) {
    this.run = run;
    this.handle = new Handle(sentKey, this);
    this.keptBytes = keptBytes;
    this.readMs = leaseMs / 2;
  }

  /** The response has ended: it is too late for hold(). */
  responded(): void {
    this.#hasResponded = true;
  }

  /** Makes any end from here on but a success hold the key; throws when it is too late. */
  hold(reason: string): void {
    if (this.#hasResponded) throw new Error("req.idempotency.hold: the response has ended already");
    this.run.hold(reason);
  }
}

/** A class because of `signal`: V8 takes ten times as long for an object literal with a getter. */
class Handle implements RequestIdempotency {
  readonly key: string;
  readonly storeKey: string;
  readonly token: string;
  readonly fence: number;
  readonly #owned: OwnedRequest;

  constructor(sentKey: string, owned: OwnedRequest) {
    const { attempt, fence } = owned.run;
    this.key = sentKey;
    this.storeKey = attempt.key;
    this.token = attempt.token;
    this.fence = fence;
    this.#owned = owned;
  }

  get signal(): AbortSignal {
    return this.#owned.run.signal;
  }

  // An own function, so that a handler can take it out of the object.
  readonly hold = (reason: string): void => {
    if (typeof reason !== "string" || reason === "") {
      throw new TypeError("req.idempotency.hold: the reason must be a string that is not empty");
    }
    this.#owned.hold(reason);
  };
}
