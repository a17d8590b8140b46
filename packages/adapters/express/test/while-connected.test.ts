import { EventEmitter } from "node:events";
import { expect, test } from "@jest/globals";
import type { GuardResponse } from "@countersign/express";
import { whileConnected } from "../src/node-response.ts";

class FakeResponse extends EventEmitter {
  destroyed = false;

  get asResponse(): GuardResponse {
    return this as unknown as GuardResponse;
  }
}

test("whoever waits for a client hears at once that it leaves, and nothing listens afterwards", async () => {
  const res = new FakeResponse();
  const heard = await whileConnected(res.asResponse, (left) => {
    const before = left.aborted;
    res.emit("close");
    return [before, left.aborted];
  });
  expect(heard).toEqual([false, true]);
  expect(res.listenerCount("close")).toBe(0);
});

test("a client that has left before is no client to wait for", async () => {
  const res = new FakeResponse();
  res.destroyed = true;
  expect(await whileConnected(res.asResponse, (left) => left.aborted)).toBe(true);
});

test("nothing listens after work that fails", async () => {
  const res = new FakeResponse();
  const failing = whileConnected(res.asResponse, () => Promise.reject(new Error("down")));
  await expect(failing).rejects.toThrow("down");
  expect(res.listenerCount("close")).toBe(0);
});
