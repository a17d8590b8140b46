import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { guardChannel, guardChannelName, noticeChannelName, type GuardNotice } from "@countersign/core";
import { publishNotice } from "@countersign/core/internal";
import { describe, expect, test } from "@jest/globals";

describe("publishNotice", () => {
  const notice: GuardNotice = {
    guard: "exampleGuard",
    code: "lease-lost",
    message: "another process took over",
  };

  test("says that nobody listens", () => {
    expect(publishNotice(notice)).toBe(false);
  });

  test("gives the notice itself to the subscribers", () => {
    const seen: unknown[] = [];
    const onNotice = (message: unknown): void => {
      seen.push(message);
    };
    subscribe(noticeChannelName, onNotice);
    try {
      expect(publishNotice(notice)).toBe(true);
    } finally {
      unsubscribe(noticeChannelName, onNotice);
    }
    expect(seen).toEqual([notice]);
    expect(publishNotice(notice)).toBe(false);
  });
});

test("the channels bear their documented names", () => {
  expect([guardChannelName, noticeChannelName]).toEqual(["countersign:guard", "countersign:notice"]);
  expect(guardChannel.name).toBe("countersign:guard");
});
