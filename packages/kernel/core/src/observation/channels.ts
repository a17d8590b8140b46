import { channel, type Channel } from "node:diagnostics_channel";
import type { Verdict } from "../guard-error.ts";
import { warnOfError, writeStderrLine } from "./stderr-lines.ts";
import {
  channels,
  onTraceEnd,
  traces,
  type ClaimTrace,
  type EventTrace,
  type KeyUseEvent,
  type LeaseLostEvent,
  type SettledEvent,
  type StoreTrace,
  type TaskTrace,
  type Trace,
  type TraceContext,
  type WaitTrace,
} from "./traces.ts";

/** Every guard publishes one {@link GuardEvent} on this `diagnostics_channel` for each request that it decides. */
export const guardChannelName = "countersign:guard";

/** What a subscriber of `countersign:guard` receives; `Native` is the request of its framework. */
export interface GuardEvent<Native extends object = object> extends Verdict {
  /** Time in the guard alone, in milliseconds. */
  readonly durationMs: number;
  readonly req: Native;
  /** The error as given to `next`; undefined on a pass. */
  readonly error: unknown;
}

/** For guards. Check `hasSubscribers` before building an event. */
export const guardChannel: Channel = channel(guardChannelName);

/** Publishes what is no verdict, such as a lost lease, on `countersign:notice`. Returns whether there are subscribers. */
export function publishNotice(notice: GuardNotice): boolean {
  if (!noticeChannel.hasSubscribers) return false;
  noticeChannel.publish(notice);
  return true;
}

/** As {@link publishNotice}; without subscribers writes one line on stderr, with its `error`. */
export function publishFailure(notice: GuardNotice): void {
  if (publishNotice(notice)) return;
  const { guard, code, message, error } = notice;
  writeStderrLine({ guard, code, message, error });
}

/** The `diagnostics_channel` of {@link GuardNotice}. */
export const noticeChannelName = "countersign:notice";

export interface GuardNotice {
  readonly guard: string;
  readonly code: string;
  /** For the log; holds no secret, and wire text only escaped and cut. */
  readonly message: string;
  readonly req?: object | undefined;
  readonly error?: unknown;
}

const noticeChannel: Channel = channel(noticeChannelName);

/** What an app's own code threw. */
interface ThrownEvent {
  /** Undefined where only the asynchronous context knows it. */
  readonly req: object | undefined;
  readonly error: unknown;
}

/** The `diagnostics_channel` of {@link ThrownEvent}. */
export const thrownChannelName = "countersign:thrown";

const thrownChannel: Channel = channel(thrownChannelName);

/** For adapters: tells subscribers what a handler threw. No answer holds it. */
export function publishThrown(error: unknown, req?: object): void {
  if (thrownChannel.hasSubscribers) thrownChannel.publish({ error, req } satisfies ThrownEvent);
}

/** What {@link WarnOnce} says; no wire text. */
interface Warning {
  readonly code: string;
  readonly message: string;
  readonly req?: object | undefined;
}

/** Warns once for each code: as a notice on `countersign:notice` and as a process warning. */
export interface WarnOnce {
  (warning: Warning): void;
  has(code: string): boolean;
}

/** One memory of warnings for one middleware, bounded by the number of codes: no caller can flood a log. */
export function createWarnOnce(guard: string): WarnOnce {
  const given = new Set<string>();
  const warnOnce = ({ code, message, req }: Warning): void => {
    if (given.has(code)) return;
    given.add(code);
    publishNotice({ guard, code, message, req });
    process.emitWarning(`${guard}: ${message}`, { code });
  };
  return Object.assign(warnOnce, { has: (code: string): boolean => given.has(code) });
}

/** The `diagnostics_channel` of {@link Built}. */
export const builtChannelName = "countersign:built";

/** What a factory's option rules show of its options, never a secret. */
export interface Built {
  /** The factory that the app called, such as `payoutEndpoint`. */
  readonly factory: string;
  /** The option that holds these, such as `signature`; undefined for the factory's own. */
  readonly holder: string | undefined;
  /** By option name: its value, or what its rule makes of it. */
  readonly facts: BuiltFacts;
}

export type BuiltFact = string | number | boolean | null | readonly BuiltFact[] | BuiltFacts;

interface BuiltFacts {
  readonly [name: string]: BuiltFact;
}

export const builtChannel: Channel = channel(builtChannelName);

/** What subscribers receive: of channels as it is published, of traces when they end. */
export interface PublishedEvents {
  readonly verdict: GuardEvent;
  readonly notice: GuardNotice;
  readonly thrown: ThrownEvent;
  readonly keyUse: KeyUseEvent;
  readonly claim: ClaimTrace;
  readonly wait: WaitTrace;
  readonly store: StoreTrace;
  readonly event: EventTrace;
  readonly task: TaskTrace;
  readonly settled: SettledEvent;
  readonly leaseLost: LeaseLostEvent;
}

/** A sink's subscribers; those of traces are called when a trace ends. An absent one costs nothing. */
export type Listener = {
  readonly [Name in keyof PublishedEvents]?: ((event: PublishedEvents[Name]) => void) | undefined;
};

/**
 * Subscribes a sink to the channels of its members; returns the function that unsubscribes it. A throw becomes a process
 * warning of `factoryName`, since a throwing subscriber would end the process.
 */
export function listen(factoryName: string, listener: Listener): () => void {
  const ends = [
    subscribe(factoryName, guardChannelName, listener.verdict),
    subscribe(factoryName, noticeChannelName, listener.notice),
    subscribe(factoryName, thrownChannelName, listener.thrown),
    subscribe(factoryName, channels.keyUse.name, listener.keyUse),
    subscribe(factoryName, channels.settled.name, listener.settled),
    subscribe(factoryName, channels.leaseLost.name, listener.leaseLost),
    subscribeToEnd(factoryName, traces.claim, listener.claim),
    subscribeToEnd(factoryName, traces.wait, listener.wait),
    subscribeToEnd(factoryName, traces.store, listener.store),
    subscribeToEnd(factoryName, traces.event, listener.event),
    subscribeToEnd(factoryName, traces.task, listener.task),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function subscribe(
  factoryName: string,
  name: string | symbol,
  handle: ((event: never) => void) | undefined,
): () => void {
  if (handle === undefined) return nothing;
  const safe = warningOnThrow(factoryName, handle);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of what these packages publish
  const listener = (event: unknown): void => safe(event as never);
  channel(name).subscribe(listener);
  return () => {
    channel(name).unsubscribe(listener);
  };
}

function subscribeToEnd<Context extends TraceContext>(
  factoryName: string,
  trace: Trace<Context>,
  handle: ((context: Context) => void) | undefined,
): () => void {
  return handle === undefined ? nothing : onTraceEnd(trace, warningOnThrow(factoryName, handle));
}

function warningOnThrow<Event>(factoryName: string, handle: (event: Event) => void): (event: Event) => void {
  return (event) => {
    try {
      handle(event);
    } catch (error) {
      warnOfError(factoryName, "could not tell of an event", error);
    }
  };
}

function nothing(): void {}

/** Bounds a label's values: the first `max` texts stay, others become `other`. Unbounded, callers' texts would fill the memory. */
export function boundedLabel(max: number): (text: string) => string {
  const known = new Set<string>();
  return (text) => {
    if (known.has(text)) return text;
    if (known.size >= max) return "other";
    known.add(text);
    return text;
  };
}
