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

/** What a sink hears; traces when they are over. What it leaves out is not subscribed to, and costs nothing. */
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
 * Subscribes a sink to all channels that it hears. What it throws becomes a process warning of `factory`: behind a channel it would
 * end the process. Returns what unsubscribes it.
 */
export function listen(factory: string, listener: Listener): () => void {
  const ends = [
    hear(factory, guardChannelName, listener.verdict),
    hear(factory, noticeChannelName, listener.notice),
    hear(factory, keyUseChannelName, listener.keyUse),
    hear(factory, settledChannel.name, listener.settled),
    hear(factory, leaseLostChannel.name, listener.leaseLost),
    hearEnd(factory, claimTrace, listener.claim),
    hearEnd(factory, waitTrace, listener.wait),
    hearEnd(factory, storeTrace, listener.store),
    hearEnd(factory, eventTrace, listener.event),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function hear(
  factory: string,
  name: string | symbol,
  tell: ((event: never) => void) | undefined,
): () => void {
  if (tell === undefined) return nothing;
  const heard = carefully(factory, tell);
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of what these packages publish
  const listener = (event: unknown): void => heard(event as never);
  channel(name).subscribe(listener);
  return () => {
    channel(name).unsubscribe(listener);
  };
}

function hearEnd<Context extends TraceContext>(
  factory: string,
  trace: Trace<Context>,
  tell: ((context: Context) => void) | undefined,
): () => void {
  return tell === undefined ? nothing : onTraceEnd(trace, carefully(factory, tell));
}

function carefully<Event>(factory: string, tell: (event: Event) => void): (event: Event) => void {
  return (event) => {
    try {
      tell(event);
    } catch (error) {
      warnOfError(factory, "could not tell of an event", error);
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
