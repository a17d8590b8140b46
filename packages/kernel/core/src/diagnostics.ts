import { channel, type Channel } from "node:diagnostics_channel";
import { createRequestFact, type RequestFact } from "./request-fact.ts";
import { writeStderrLine } from "./stderr-lines.ts";
import type { Verdict } from "./verdict-record.ts";

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
 * Publishes something that is not the verdict on one request: a replaced payload, a lost lease, a doubtful proxy setting.
 * Subscribers of `countersign:notice` receive `{ guard, code, message, ...details }`. Returns whether anybody listens.
 */
export function publishNotice(notice: GuardNotice): boolean {
  if (!noticeChannel.hasSubscribers) return false;
  noticeChannel.publish(notice);
  return true;
}

/** As {@link publishNotice}, for what must not go unheard: one line on stderr, with its `error`, when nobody subscribes. */
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

const reported: RequestFact<true> = createRequestFact();

/** Notes that the refusal was reported to an `onReject`, so that it needs no line on stderr. */
export function noteReported(req: object): void {
  reported.set(req, true);
}

/** Whether {@link noteReported} was called for the request. */
export function wasReported(req: object): boolean {
  return reported.get(req) === true;
}
