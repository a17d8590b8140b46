import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { noticeChannelName } from "@countersign/core";

export interface Notices {
  all(): readonly unknown[];
  stop(): void;
}

export function collectNotices(): Notices {
  const notices: unknown[] = [];
  const keep = (notice: unknown): void => void notices.push(notice);
  subscribe(noticeChannelName, keep);
  return { all: () => notices, stop: () => unsubscribe(noticeChannelName, keep) };
}
