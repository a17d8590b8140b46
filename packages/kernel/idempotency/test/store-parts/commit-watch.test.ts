import { EventEmitter } from "node:events";
import { describe, expect, test } from "@jest/globals";
import { watchCommits } from "@countersign/idempotency/store";

const cancelled = { code: "01000", routine: "SyncRepWaitForLSN" };

describe("watchCommits()", () => {
  test("rejects as an unknown outcome when the server warns meanwhile", async () => {
    const connection = new EventEmitter();
    const sent = watchCommits(connection, async () => {
      connection.emit("notice", cancelled);
      return "answered with success";
    });
    await expect(sent).rejects.toMatchObject({ code: "08007" });
    expect(await watchCommits(connection, () => "next")).toBe("next");
  });

  test("rejects so too when what is sent behind the commit fails", async () => {
    const connection = new EventEmitter();
    const late = new Error("late");
    const sent = watchCommits(connection, async () => {
      connection.emit("notice", cancelled);
      throw late;
    });
    await expect(sent).rejects.toMatchObject({ code: "08007", cause: late });
    await expect(watchCommits(connection, () => Promise.reject(late))).rejects.toBe(late);
  });

  test("takes no other warning for it", async () => {
    const connection = new EventEmitter();
    const sent = watchCommits(connection, async () => {
      connection.emit("notice", { code: "01000", routine: "ExecRaise" });
      connection.emit("notice", undefined);
      return "sent";
    });
    expect(await sent).toBe("sent");
  });

  test("listens once on each connection, and beside the app", async () => {
    const connection = new EventEmitter();
    const heard: unknown[] = [];
    connection.on("notice", (notice) => heard.push(notice));
    for (let time = 0; time < 20; time += 1) await watchCommits(connection, () => Promise.resolve());
    expect(connection.listenerCount("notice")).toBe(2);
    connection.emit("notice", cancelled);
    expect(heard).toEqual([cancelled]);
  });

  test.each([[undefined], [null], ["text"], [{}]])("sends on what has no events: %p", async (connection) => {
    expect(await watchCommits(connection, () => Promise.resolve("sent"))).toBe("sent");
  });
});
