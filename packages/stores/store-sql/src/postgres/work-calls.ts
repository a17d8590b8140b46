/** What every function of the work store takes, as JSON: texts as stored, times in milliseconds. */
interface Call {
  /** In place of the server's clock. */
  readonly now?: string | undefined;
  /** The longest wait for a lock of a call that is no part of the caller's transaction. */
  readonly waitMs?: number | undefined;
}

export interface AddCall extends Call {
  readonly queue: string;
  readonly tasks: readonly {
    readonly id: string;
    readonly lane: string;
    readonly body: string;
    readonly delayMs: number;
  }[];
}

export interface ClaimCall extends Call {
  readonly queue: string;
  readonly limit: number;
  readonly token: string;
  readonly leaseMs: number;
}

interface OwnedCall extends Call {
  readonly tasks: readonly { readonly queue: string; readonly id: string; readonly token: string }[];
}

export interface ExtendCall extends OwnedCall {
  readonly leaseMs: number;
}

export interface SettleCall extends OwnedCall {
  readonly goal: "open" | "dead" | "done";
  /** Of an open one. */
  readonly delayMs?: number | undefined;
  /** How long a done one is remembered. */
  readonly restMs?: number | undefined;
  /** Of a failure. */
  readonly reason?: string | undefined;
  /** Whether the attempt does not count. */
  readonly isUndone?: boolean | undefined;
}

export interface RetryCall extends Call {
  readonly queue: string;
  readonly ids?: readonly string[] | undefined;
  readonly deadSinceMs?: number | undefined;
}
