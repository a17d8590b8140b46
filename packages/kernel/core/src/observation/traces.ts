import { channel, tracingChannel, type Channel } from "node:diagnostics_channel";
import { types } from "node:util";
import { warnOfError } from "./stderr-lines.ts";

/** The members of every trace. `outcome` and `durationMs` are set at `end` or `asyncEnd`. */
export interface TraceContext {
  /** One of few words, fit for a label; `error` for a throw or rejection. */
  outcome?: string | undefined;
  durationMs?: number | undefined;
  result?: unknown;
  error?: unknown;
}

/** The claim of an idempotency key. Outcomes: `acquired`, `done`, `held`, `in-flight`; `error` when the store gave no answer. */
export interface ClaimTrace extends TraceContext {
  readonly guard: string;
  /** As the store keeps it, escaped and cut. */
  readonly key: string;
  readonly req: object | undefined;
}

/** A duplicate that waits for the owner of its key. Outcomes: `done`, `held`, `claim`, `timeout`, `client-left`. */
export interface WaitTrace extends TraceContext {
  readonly guard: string;
  readonly key: string;
}

/** One call of a store. Outcomes: `ok`, `timeout`, `error`; of transactions also `conflict`, `locked`, `refused`, which are no faults of it. */
export interface StoreTrace extends TraceContext {
  /** The store's `engine`; `other` without one. */
  readonly engine: string;
  /**
   * The method, such as `claim`; `claim-nonce`, `get-key`, `keep-answer`, `find-answer` of the other stores, `prune` in the background.
   * `begin`, `keep`, `undo` and `commit` of a transaction, `repeat` for the pause before it runs again.
   */
  readonly step: string;
}

/** The handling of one webhook event. Outcomes: those of `EventOutcome`. */
export interface EventTrace extends TraceContext {
  /** Escaped and cut. */
  readonly type: string;
  /** True for the spec's own types; only these may be metric labels. */
  readonly isKnownType: boolean;
  readonly eventId: string;
  readonly webhookId: string;
  /** 1 + the event's known failures; undefined until they are read. */
  attempt: number | undefined;
}

/** One attempt at a task of the table of work. Outcomes: `done`, `failed`, `dead`, `gone`, `given-back`. */
export interface TaskTrace extends TraceContext {
  readonly queue: string;
  /** Escaped and cut. */
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
}

export interface SettledEvent {
  readonly guard: string;
  readonly key: string;
  /**
   * `done`, `released`, `held`; `not-owned` when another attempt, or the attempt's own transaction, ended the record;
   * `abandoned` when the store refused the step for an hour.
   */
  readonly outcome: "done" | "released" | "held" | "not-owned" | "abandoned";
  /** From the claim, in milliseconds. */
  readonly ownedMs: number;
  readonly req: object | undefined;
}

/** An owner whose key another attempt may own, for `countersign:lease-lost`. */
export interface LeaseLostEvent {
  readonly guard: string;
  readonly key: string;
  /** `lease-lost`, `lease-expired` or `handler-timeout`. */
  readonly code: string;
  readonly req: object | undefined;
}

/** The use of a signing key, for `countersign:key-use`. */
export interface KeyUseEvent {
  readonly keyid: string;
  /** Whose key it is, if the key says. */
  readonly subject: string | undefined;
  /** When the signature was made, in Unix seconds, if it says. */
  readonly created: number | undefined;
  /** The key's end, in Unix seconds; undefined without one. */
  readonly notAfter: number | undefined;
}

/** A `TracingChannel` of node:diagnostics_channel; its own type differs between versions of Node's types. */
export interface Trace<Context extends TraceContext> {
  readonly start: Channel;
  readonly end: Channel;
  readonly asyncStart: Channel;
  readonly asyncEnd: Channel;
  readonly error: Channel;
  readonly hasSubscribers: boolean;
  /** For the compiler alone, never present: what its channels publish. */
  readonly published?: Context | undefined;
}

/** Subscribe by `tracingChannel(name)` of node:diagnostics_channel. Ask `hasSubscribers` before making a context. */
export const traces: {
  readonly claim: Trace<ClaimTrace>;
  readonly wait: Trace<WaitTrace>;
  readonly store: Trace<StoreTrace>;
  readonly event: Trace<EventTrace>;
  readonly task: Trace<TaskTrace>;
} = {
  claim: tracingChannel("countersign:claim"),
  wait: tracingChannel("countersign:wait"),
  store: tracingChannel("countersign:store"),
  event: tracingChannel("countersign:event"),
  task: tracingChannel("countersign:task"),
};

/** Channels of single events, such as one {@link KeyUseEvent} for each verified signature. */
export const channels: { readonly keyUse: Channel; readonly settled: Channel; readonly leaseLost: Channel } =
  {
    keyUse: channel("countersign:key-use"),
    settled: channel("countersign:settled"),
    leaseLost: channel("countersign:lease-lost"),
  };

export interface Traced<T> {
  readonly work: () => T | Promise<T>;
  readonly outcomeOf: (result: T) => string;
  /** The outcome of a throw or rejection. Default `error`. */
  readonly faultOf?: (() => string) | undefined;
}

/**
 * Does `work` in a trace, as `tracePromise()` and `traceSync()` do. Stores are bound to `start`, so that spans nest.
 * A value ends it at `end`, a promise at `asyncEnd`; either is returned unchanged.
 */
export function traced<T>(
  trace: Trace<TraceContext>,
  context: TraceContext,
  { work, outcomeOf, faultOf = fault }: Traced<T>,
): T | Promise<T> {
  const { start, end, asyncStart, asyncEnd, error: failed } = trace;
  const around = arounds.get(trace) ?? [];
  const startedAtMs = performance.now();
  const succeed = (result: T): void => {
    context.durationMs = performance.now() - startedAtMs;
    context.result = result;
    context.outcome = outcomeOf(result);
  };
  const fail = (error: unknown): void => {
    context.durationMs = performance.now() - startedAtMs;
    context.error = error;
    context.outcome = faultOf();
    failed.publish(context);
  };
  const endLater = (): void => {
    asyncStart.publish(context);
    asyncEnd.publish(context);
  };
  const later = async (answer: PromiseLike<T>): Promise<void> => {
    try {
      succeed(await answer);
    } catch (error) {
      fail(error);
    }
    endLater();
  };
  return start.runStores(context, () => {
    try {
      const answer = within(around, context, work);
      // The caller gets the answer itself: subscribers must not change behaviour.
      if (types.isPromise(answer)) void later(answer);
      else succeed(answer);
      return answer;
    } catch (error) {
      fail(error);
      throw error;
    } finally {
      end.publish(context);
    }
  });
}

function fault(): string {
  return "error";
}

/** Must call `work` and return its result. Its own throw becomes a process warning. */
export type Around<Context extends TraceContext> = <R>(context: Context, work: () => R) => R;

const arounds = new WeakMap<Trace<TraceContext>, Set<Around<never>>>();

/** Runs `around` around each trace's work, for contexts that only a call can set (OpenTelemetry). Returns a function that ends it. */
export function aroundTrace<Context extends TraceContext>(
  trace: Trace<Context>,
  around: Around<Context>,
): () => void {
  const all = arounds.get(trace) ?? new Set();
  arounds.set(trace, all.add(around));
  return () => void all.delete(around);
}

function within<R>(all: Iterable<Around<never>>, context: TraceContext, work: () => R): R {
  let run = work;
  for (const around of all) {
    const inner = run;
    run = () => guarded(around, context, inner);
  }
  return run();
}

/** Does the work exactly once, whatever `around` does, and returns the work's own result: it may have claimed a payment. */
function guarded<R>(around: Around<never>, context: TraceContext, work: () => R): R {
  let ended: { readonly answer: R } | { readonly error: unknown } | undefined;
  const once = (): R => {
    ended ??= endOf(work);
    if ("error" in ended) throw ended.error;
    return ended.answer;
  };
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of what this package publishes alone
    around(context as never, once);
  } catch (error) {
    const isOwn = ended !== undefined && "error" in ended && ended.error === error;
    if (!isOwn) warnOfError("aroundTrace", "caught what is around a trace", error);
  }
  return once();
}

function endOf<R>(work: () => R): { readonly answer: R } | { readonly error: unknown } {
  try {
    return { answer: work() };
  } catch (error) {
    return { error };
  }
}

export function onTraceEnd<Context extends TraceContext>(
  trace: Trace<Context>,
  subscriber: (context: Context) => void,
): () => void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of what this package publishes alone
  const atAsyncEnd = (context: unknown): void => subscriber(context as Context);
  // A pending promise has no outcome yet.
  const atEnd = (context: unknown): void => {
    if (Object(context).outcome !== undefined) atAsyncEnd(context);
  };
  trace.end.subscribe(atEnd);
  trace.asyncEnd.subscribe(atAsyncEnd);
  return () => {
    trace.end.unsubscribe(atEnd);
    trace.asyncEnd.unsubscribe(atAsyncEnd);
  };
}
