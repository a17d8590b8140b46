import { channel, type Channel } from "node:diagnostics_channel";
import type { Verdict } from "../guard-error.ts";
import { warnOfError, writeStderrLine } from "./stderr-lines.ts";
import {
  claimTrace,
  eventTrace,
  keyUseChannelName,
  leaseLostChannel,
  onTraceEnd,
  settledChannel,
  storeTrace,
  waitTrace,
  type ClaimTrace,
  type EventTrace,
  type KeyUseEvent,
  type LeaseLostEvent,
  type SettledEvent,
  type StoreTrace,
  type Trace,
  type TraceContext,
  type WaitTrace,
} from "./traces.ts";

/** The `diagnostics_channel` on which every guard publishes one {@link GuardEvent} for each request that it decided. */
export const guardChannelName = "countersign:guard";

/** What a subscriber of `countersign:guard` receives; `Native` is the request of its framework. */
export interface GuardEvent<Native extends object = object> extends Verdict {
  /** Time in the guard alone, in milliseconds. */
  readonly durationMs: number;
  /** The request as its framework knows it. */
  readonly req: Native;
  /** The error as given to `next`; undefined on a pass. */
  readonly error: unknown;
}

/** The channel itself, for guards. Check `hasSubscribers` before building an event. */
export const guardChannel: Channel = channel(guardChannelName);

/**
 * Publishes what is no verdict on `countersign:notice`: a replaced payload, a lost lease, a doubtful proxy setting. Returns whether there
 * are subscribers.
 */
export function publishNotice(notice: GuardNotice): boolean {
  if (!noticeChannel.hasSubscribers) return false;
  noticeChannel.publish(notice);
  return true;
}

/** As {@link publishNotice}; without subscribers one line on stderr, with its `error`. */
export function publishFailure(notice: GuardNotice): void {
  if (publishNotice(notice)) return;
  const { guard, code, message, error } = notice;
  writeStderrLine({ guard, code, message, error });
}

/** The `diagnostics_channel` of {@link GuardNotice}. */
export const noticeChannelName = "countersign:notice";

/** What a subscriber of `countersign:notice` receives. */
export interface GuardNotice {
  readonly guard: string;
  /** Stable machine code in kebab-case. */
  readonly code: string;
  /** For the log; holds no secret, and text from the wire only escaped and cut. */
  readonly message: string;
  readonly req?: object | undefined;
  readonly error?: unknown;
}

const noticeChannel: Channel = channel(noticeChannelName);

/** What {@link WarnOnce} says; without any text from the wire. */
interface Warning {
  readonly code: string;
  readonly message: string;
  /** Undefined for what is known without a request. */
  readonly req?: object | undefined;
}

/** Warns once for each code: as a notice on `countersign:notice` and as a process warning. */
export interface WarnOnce {
  (warning: Warning): void;
  /** Whether the code was given out before. */
  has(code: string): boolean;
}

/** One memory of warnings, for one middleware. It is bounded by the number of codes, so that no caller floods a log. */
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

/** A factory has read its options: what their rules show of them, never a secret. */
export interface Built {
  /** The factory that the app has called, such as `payoutEndpoint`. */
  readonly factory: string;
  /** The option that holds these, such as `signature`; undefined of the factory's own. */
  readonly holder: string | undefined;
  /** By the name of the option: its value, or what its rule makes of it. */
  readonly facts: BuiltFacts;
}

/** Values that JSON has. */
export type BuiltFact = string | number | boolean | null | readonly BuiltFact[] | BuiltFacts;

/** Facts by name. */
interface BuiltFacts {
  readonly [name: string]: BuiltFact;
}

export const builtChannel: Channel = channel(builtChannelName);

/** The subscribers of a sink; those of traces are called when a trace is over. An absent one costs nothing. */
export interface Listener {
  readonly verdict?: ((event: GuardEvent) => void) | undefined;
  readonly notice?: ((notice: GuardNotice) => void) | undefined;
  readonly keyUse?: ((event: KeyUseEvent) => void) | undefined;
  readonly claim?: ((context: ClaimTrace) => void) | undefined;
  readonly wait?: ((context: WaitTrace) => void) | undefined;
  readonly store?: ((context: StoreTrace) => void) | undefined;
  readonly event?: ((context: EventTrace) => void) | undefined;
  readonly settled?: ((event: SettledEvent) => void) | undefined;
  readonly leaseLost?: ((event: LeaseLostEvent) => void) | undefined;
}

/**
 * Subscribes a sink to the channels of its members. What it throws becomes a process warning of `factoryName`: a throwing subscriber
 * would end the process. Returns what unsubscribes it.
 */
export function listen(factoryName: string, listener: Listener): () => void {
  const ends = [
    subscribe(factoryName, guardChannelName, listener.verdict),
    subscribe(factoryName, noticeChannelName, listener.notice),
    subscribe(factoryName, keyUseChannelName, listener.keyUse),
    subscribe(factoryName, settledChannel.name, listener.settled),
    subscribe(factoryName, leaseLostChannel.name, listener.leaseLost),
    subscribeToEnd(factoryName, claimTrace, listener.claim),
    subscribeToEnd(factoryName, waitTrace, listener.wait),
    subscribeToEnd(factoryName, storeTrace, listener.store),
    subscribeToEnd(factoryName, eventTrace, listener.event),
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

/**
 * Bounds the values of a label: the first `max` different texts stay, all others are `other`. A metric with a label for each caller's
 * text would fill the memory.
 */
export function boundedLabel(max: number): (text: string) => string {
  const known = new Set<string>();
  return (text) => {
    if (known.has(text)) return text;
    if (known.size >= max) return "other";
    known.add(text);
    return text;
  };
}
