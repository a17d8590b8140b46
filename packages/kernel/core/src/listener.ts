import { channel } from "node:diagnostics_channel";
import { guardChannelName, noticeChannelName, type GuardEvent, type GuardNotice } from "./diagnostics.ts";
import { warnOfError } from "./reject-report.ts";
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

/** The subscribers of a sink; those of traces are called when a trace is over. What it leaves out is not subscribed to, and costs nothing. */
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
 * Makes a label of few values of a text that may have many: the first `max` different ones as they are, and `other` from then on. A
 * metric with a label for each caller's text would fill the memory.
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
