import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  guardChannelName,
  noticeChannelName,
  type GuardEvent,
  type GuardNotice,
} from "@countersign/core";

/**
 * What your metrics have: counters with labels, such as those of prom-client.
 */
export interface Metrics {
  count(name: string, labels: Readonly<Record<string, string>>): void;
  observe(
    name: string,
    seconds: number,
    labels: Readonly<Record<string, string>>,
  ): void;
}

/**
 * Call it once, at the start. From then on no refusal is a line on stderr:
 * they are all here. Returns what ends it, for tests.
 */
export function measure(
  metrics: Metrics,
  log: (fields: object) => void,
): () => void {
  const onGuard = (message: unknown): void => {
    const {
      guard,
      outcome,
      code = "none",
      durationMs,
      error,
    }: GuardEvent = Object(message);
    metrics.count("countersign_verdicts_total", { guard, outcome, code });
    metrics.observe("countersign_verdict_seconds", durationMs / 1000, {
      guard,
    });
    // `docs` of the error is the page of its code. No body, header or
    // signature is in any of these.
    if (outcome !== "pass")
      log({
        guard,
        outcome,
        code,
        docs: Object(error).docs,
        message: Object(error).message,
      });
  };
  const onNotice = (message: unknown): void => {
    const { guard, code, message: text }: GuardNotice = Object(message);
    metrics.count("countersign_notices_total", { guard, code });
    log({ guard, code, message: text });
  };
  subscribe(guardChannelName, onGuard);
  subscribe(noticeChannelName, onNotice);
  return () => {
    unsubscribe(guardChannelName, onGuard);
    unsubscribe(noticeChannelName, onNotice);
  };
}
