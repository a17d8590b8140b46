import type { Awaitable } from "@countersign/idempotency";
import type { KeyAttempt, WhileConnected } from "@countersign/idempotency/internal";
import type { HandlerEnd, OwnedRequest } from "./owned-request.ts";

/** A request that wants to own its key while its handler runs. */
export interface KeyedRequest {
  /** 1 to 512 characters, less those of `scope`; anything else is 400. */
  readonly key: unknown;
  /** What the handler sees as the caller's key. Default `key`. */
  readonly sentKey?: string | undefined;
  /** Gives 1 to 128 printable ASCII characters. A promise is due within `storeTimeoutMs`. */
  readonly fingerprint: () => Awaitable<string>;
  /** Called once the key is owned, before the handler; what it throws refuses the request and frees the key. */
  readonly before?: (() => void) | undefined;
}

/** What an adapter does around the handler of a request. */
export interface Handling {
  readonly whileConnected: WhileConnected;
  /** Lease mode: begins the handler that follows, and resolves to how its response has ended. */
  readonly begin: (owned: OwnedRequest) => Promise<HandlerEnd>;
  /** Transaction mode: calls the handler, each time. Default: calls it as it is. */
  readonly around?: ((handle: () => unknown) => unknown) | undefined;
}

/** An attempt at the key of a request. */
export interface RequestAttempt extends KeyAttempt {
  readonly req: object;
}
