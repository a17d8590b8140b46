import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { noticeChannelName, type GuardNotice } from "@countersign/core";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { setImmediate as turn } from "node:timers/promises";
import { StatementGate } from "../../src/transactions/statement-gate.ts";

const notices: GuardNotice[] = [];
const listen = (notice: unknown): void => void notices.push(notice as GuardNotice);

beforeEach(() => {
  notices.length = 0;
  subscribe(noticeChannelName, listen);
});
afterEach(() => {
  unsubscribe(noticeChannelName, listen);
});

const boom = new Error("boom");
const closed = /Lib: the handler's transaction is closed; await every statement/;

/** A statement on its way, and what answers it. */
function onItsWay() {
  let answer!: (result: string) => void;
  let fail!: (error: Error) => void;
  const sent = new Promise<string>((resolve, reject) => {
    answer = resolve;
    fail = reject;
  });
  return { statement: () => sent, answer, fail };
}

describe("StatementGate", () => {
  test("lets statements through while the handler runs, with their own results and errors", async () => {
    const gate = new StatementGate("Lib", "postgresql");
    await expect(gate.send(() => Promise.resolve("row"))).resolves.toBe("row");
    await expect(gate.send(() => Promise.reject(boom))).rejects.toBe(boom);
    expect(() =>
      gate.send(() => {
        throw boom;
      }),
    ).toThrow(boom);
    // Neither of them counts as on its way.
    expect(await gate.close()).toMatchObject({ unanswered: 0 });
  });

  test("sends nothing once it is closed, and reports the first late statement alone", async () => {
    const gate = new StatementGate("Lib", "postgresql");
    await gate.close();
    let sent = 0;
    const late = () => gate.send(() => Promise.resolve((sent += 1)));
    await expect(late()).rejects.toThrow(closed);
    await expect(late()).rejects.toThrow(closed);
    expect(sent).toBe(0);
    expect(notices.map(({ guard, code }) => [guard, code])).toEqual([["transaction", "late-statement"]]);
  });

  test("ends no process by a late statement that nobody awaits", async () => {
    const rejections: unknown[] = [];
    const listener = (error: unknown): void => void rejections.push(error);
    process.on("unhandledRejection", listener);
    try {
      const gate = new StatementGate("Lib", "postgresql");
      await gate.close();
      void gate.send(() => Promise.resolve());
      await turn();
      await turn();
    } finally {
      process.off("unhandledRejection", listener);
    }
    expect(rejections).toEqual([]);
  });

  test("is closed from the call of close() on, which waits for what is on its way", async () => {
    const gate = new StatementGate("Lib", "postgresql");
    const [one, two] = [onItsWay(), onItsWay()];
    const results = [gate.send(one.statement), gate.send(two.statement)];
    let isClosed = false;
    const closing = gate.close().finally(() => (isClosed = true));
    expect(gate.isOpen).toBe(false);
    await expect(gate.send(() => Promise.resolve())).rejects.toThrow(closed);
    one.answer("one");
    await turn();
    expect(isClosed).toBe(false);
    two.fail(boom);
    expect(await closing).toMatchObject({ unanswered: 2, hasWritten: false });
    expect(await Promise.allSettled(results)).toMatchObject([{ value: "one" }, { reason: boom }]);
  });

  test("counts a statement once that is answered more than once", async () => {
    const gate = new StatementGate("Lib", "postgresql");
    const [first] = [gate.begin(), gate.begin()];
    first();
    first();
    let isClosed = false;
    void gate.close().finally(() => (isClosed = true));
    await turn();
    expect(isClosed).toBe(false);
  });

  test.each([
    ["write", { hasWritten: true, idleCommands: 0 }],
    ["idle", { hasWritten: false, idleCommands: 1 }],
    [undefined, { hasWritten: false, idleCommands: 0 }],
  ] as const)("knows of a statement with the effect %s what it has changed", async (effect, told) => {
    const gate = new StatementGate("Lib", "postgresql");
    await gate.send(
      () => Promise.resolve(),
      () => effect,
    );
    expect(await gate.close()).toEqual({ unanswered: 0, ...told });
  });

  test("takes a statement that fails for one that has changed nothing", async () => {
    const gate = new StatementGate("Lib", "postgresql");
    await expect(
      gate.send(
        () => Promise.reject(boom),
        () => "write",
      ),
    ).rejects.toBe(boom);
    expect(await gate.close()).toMatchObject({ hasWritten: false, idleCommands: 1 });
  });

  test("opens for the next handler, and knows nothing of what the one before has written", async () => {
    const gate = new StatementGate("Lib", "postgresql");
    await gate.send(
      () => Promise.resolve(),
      () => "write",
    );
    await gate.close();
    gate.open();
    await expect(gate.send(() => Promise.resolve("row"))).resolves.toBe("row");
    expect(await gate.close()).toMatchObject({ hasWritten: false });
  });

  test("knows the statement by which the library ends the transaction, and no other one", () => {
    const gate = new StatementGate("Lib", "postgresql");
    expect(gate.isEnd("COMMIT")).toBe(false);
    gate.closeFor("COMMIT");
    expect(["COMMIT", "commit;", " Rollback ; "].map((text) => gate.isEnd(text))).toEqual([true, true, true]);
    expect(["COMMIT; SELECT 1", "INSERT", undefined].some((text) => gate.isEnd(text))).toBe(false);
    gate.closeFor("ROLLBACK");
    expect(gate.isEnd("COMMIT")).toBe(false);
    gate.end();
    expect(gate.isEnd("ROLLBACK")).toBe(false);
    expect(gate.isOpen).toBe(false);
  });
});
