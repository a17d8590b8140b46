import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { guardChannelName, noticeChannelName, type GuardEvent, type GuardNotice } from "@countersign/core";
import type { Logger } from "pino";

/**
 * Logs every refusal and every notice of the guards in this process: code, status and outcome, never a body, a header or
 * a signature. Returns the function that ends it.
 */
export function logGuards(logger: Logger): () => void {
  const onEvent = (message: unknown): void => {
    if (!isGuardEvent(message) || message.outcome === "pass") return;
    const { guard, outcome, code, status, durationMs, error } = message;
    const fields = { guard, outcome, code, status, durationMs };
    const reason = error instanceof Error ? error.message : undefined;
    if (outcome === "reject") logger.warn({ ...fields, reason }, "request refused");
    else logger.error({ ...fields, err: error }, "request not decided");
  };
  const onNotice = (message: unknown): void => {
    if (!isGuardNotice(message)) return;
    const { guard, code, message: text, error } = message;
    logger.warn({ guard, code, ...(error === undefined ? {} : { err: error }) }, text);
  };
  subscribe(guardChannelName, onEvent);
  subscribe(noticeChannelName, onNotice);
  return () => {
    unsubscribe(guardChannelName, onEvent);
    unsubscribe(noticeChannelName, onNotice);
  };
}

function isGuardEvent(message: unknown): message is GuardEvent {
  return typeof message === "object" && message !== null && "outcome" in message;
}

function isGuardNotice(message: unknown): message is GuardNotice {
  return typeof message === "object" && message !== null && "message" in message;
}
