// The steps of a key over a table in which somebody else writes between a look and a write.
import { describe, expect, test } from "@jest/globals";
import { claimKey, completeKey, decideKey } from "../dist/key-steps.js";
import { decideHold, type KeyChange } from "../dist/life.js";
import { MemoryTable } from "../dist/memory-table.js";
import { runSteps, runStepsNow } from "../dist/transactions/steps.js";

const claimBy = (token: string, leaseMs = 100) =>
  ({ token, fingerprint: `print of ${token}`, leaseMs, recovery: "rerun" }) as const;

let nowMs = 0;

/** A table that calls `meddle` after each look, before the look's reader can write. */
class MeddledTable extends MemoryTable {
  meddle: () => void = () => {};
  adds = 0;
  looks = 0;
  writes = 0;

  constructor() {
    super({ max: 10, originMs: 0, now: () => nowMs });
  }

  /** As an engine that does not read the row which is there. */
  override add(...given: Parameters<MemoryTable["add"]>): number | undefined {
    this.adds += 1;
    const added = super.add(...given);
    return typeof added === "number" ? added : undefined;
  }

  override look(key: string): ReturnType<MemoryTable["look"]> {
    this.looks += 1;
    const row = super.look(key);
    this.meddle();
    return row;
  }

  override write(...given: Parameters<MemoryTable["write"]>): number | undefined {
    this.writes += 1;
    return super.write(...given);
  }

  calls(): object {
    return { adds: this.adds, looks: this.looks, writes: this.writes };
  }
}

const renewal: KeyChange = { state: "running", reason: "", durationMs: 100 };

describe("claimKey()", () => {
  test("is one add for a new key, and one look more for a duplicate", () => {
    const table = new MeddledTable();
    expect(runStepsNow(claimKey(table, "k", claimBy("a")))).toMatchObject({ status: "acquired" });
    expect(table.calls()).toEqual({ adds: 1, looks: 0, writes: 0 });
    expect(runStepsNow(claimKey(table, "k", claimBy("b")))).toMatchObject({ status: "in-flight" });
    expect(table.calls()).toEqual({ adds: 2, looks: 1, writes: 0 });
  });

  test("a claim whose row was changed since it was seen is decided again", () => {
    const table = new MeddledTable();
    runStepsNow(claimKey(table, "k", claimBy("a")));
    nowMs += 200;
    // The owner, whose lease has ended, renews it in between.
    table.meddle = () => {
      table.meddle = () => {};
      table.write("k", renewal, { token: "a", states: ["running"] });
    };
    expect(runStepsNow(claimKey(table, "k", claimBy("b")))).toMatchObject({ status: "in-flight" });
    expect(table.look("k")?.token).toBe("a");
  });

  test("acquires its own key again after a lost reply, with the same fence", () => {
    const table = new MeddledTable();
    const first = runStepsNow(claimKey(table, "k", claimBy("a")));
    nowMs += 200;
    expect(runStepsNow(claimKey(table, "k", claimBy("a")))).toEqual(first);
    expect(table.look("k")?.remainingMs).toBe(100);
  });

  test("gives up on a key that others change between every look and write", () => {
    const table = new MeddledTable();
    runStepsNow(claimKey(table, "k", claimBy("a")));
    nowMs += 200;
    table.meddle = () => {
      table.write("k", { ...renewal, durationMs: -1 }, { token: "a", states: ["running"] });
    };
    expect(() => runStepsNow(claimKey(table, "k", claimBy("b")))).toThrow(/changed by others/);
  });
});

describe("decideKey() and completeKey()", () => {
  test("a hold that a completion overtook is lost", () => {
    const table = new MeddledTable();
    runStepsNow(claimKey(table, "k", claimBy("a")));
    table.meddle = () => {
      table.meddle = () => {};
      runStepsNow(completeKey(table, "k", "a", 1_000));
    };
    expect(runStepsNow(decideKey(table, "k", (row) => decideHold(row, "a", "in doubt")))).toBe("lost");
    expect(table.look("k")?.state).toBe("done");
  });

  test("a completion is one write, and ok again for its own token alone", async () => {
    const table = new MeddledTable();
    runStepsNow(claimKey(table, "k", claimBy("a")));
    expect(runStepsNow(completeKey(table, "k", "a", 1_000))).toBe("ok");
    expect(table.calls()).toEqual({ adds: 1, looks: 0, writes: 1 });
    expect(await runSteps(completeKey(table, "k", "a", 1_000))).toBe("ok");
    expect(await runSteps(completeKey(table, "k", "b", 1_000))).toBe("lost");
  });
});
