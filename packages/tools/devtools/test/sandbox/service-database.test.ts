import { chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import Database from "libsql";
import { closeDatabase, openDatabase } from "../../src/sandbox/service/database.ts";
import { ServiceBench } from "./service-bench.ts";

let folder = "";
let file = "";
beforeEach(() => {
  folder = testFolder();
  file = join(folder, "sandbox.db");
});

describe("the database of the service", () => {
  test("is a file of its owner, in write-ahead mode", () => {
    const database = openDatabase(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(database.prepare("PRAGMA journal_mode").pluck().all()).toEqual(["wal"]);
    closeDatabase(database);
    closeDatabase(openDatabase(file));
  });

  test("is open once", () => {
    const database = openDatabase(file);
    // The lock stays when another one was refused.
    for (let attempt = 0; attempt < 2; attempt += 1)
      expect(() => openDatabase(file)).toThrow(/^the database ".*\.db" is in use by another sandbox$/);
    closeDatabase(database);
    closeDatabase(openDatabase(file));
  });

  test("is no file of another program", () => {
    const other = new Database(file);
    other.exec("CREATE TABLE payouts (id TEXT)");
    other.close();
    expect(() => openDatabase(file)).toThrow(/belongs to another program$/);
    const after = new Database(file);
    expect(after.prepare("SELECT name FROM sqlite_schema").pluck().all()).toEqual(["payouts"]);
    expect(after.prepare("PRAGMA application_id").pluck().all()).toEqual([0]);
    after.close();
  });

  test.each<[string, () => string, RegExp]>([
    ["a missing folder", () => join(folder, "none", "s.db"), /its folder does not exist$/],
    ["a folder", () => folder, /cannot be opened \([^\n]+\)$/],
    ["a file of something else", () => textFile(), /is no SQLite database$/],
    ["the address of a server", () => "http://127.0.0.1:1/s.db", /its folder does not exist$/],
  ])("is not %s: one line says so", (_name, path, message) => {
    let thrown: unknown;
    try {
      openDatabase(path());
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ name: "SandboxDatabaseError", message: expect.stringMatching(message) });
    expect(String(thrown)).not.toContain("\n");
  });

  function textFile(): string {
    writeFileSync(
      file,
      "a text that is longer than the header of a database, which has a hundred bytes ".repeat(9),
    );
    chmodSync(file, 0o600);
    return file;
  }
});

describe("after a restart", () => {
  const bench = new ServiceBench();
  afterEach(() => bench.close());

  test("the service knows everything, and delivers what was left", async () => {
    await bench.open({ database: file, clock: () => Date.UTC(2024, 0, 2) });
    const { sandbox } = bench;
    sandbox.changeBuyerStatus("b-1", "ACTIVE");
    sandbox.changeSellerStatus("s-1", "REJECTED");
    const open = sandbox.createPaymentRequest({ payment_request_id: "p-1", due_date: "2024-01-01" });
    sandbox.createPaymentRequest({ payment_request_id: "p-2", due_date: "2024-01-01" });
    await bench.post("/sandbox/confirmations", { outcome: "executed" });
    const confirmations = sandbox.confirmations();
    await bench.register();
    // Its webhook is written, and the service ends before anything is sent.
    sandbox.repay("p-2");
    const eventId = sandbox.changeBuyerStatus("b-1", "SUSPENDED").event_id;
    expect(bench.webhooks).toEqual([]);

    await bench.restart({ database: file });
    const again = bench.sandbox;
    expect(again.buyerStatus("b-1")).toBe("SUSPENDED");
    expect(again.sellerStatus("s-1")).toBe("REJECTED");
    expect(again.paymentRequest("p-1")).toEqual(open);
    expect(again.paymentRequest("p-2")).toMatchObject({ status: "CLOSED" });
    expect(again.confirmations()).toEqual(confirmations);
    expect(again.deliveries.endpoints()).toMatchObject([{ url: bench.receiverUrl }]);
    expect(() => again.repay("p-2")).toThrow(/CLOSED already/);
    again.changeBuyerStatus("b-1", "ACTIVE");
    await again.deliveries.idle();
    expect(bench.events.map(({ event_id }) => event_id)).toContain(eventId);
    expect(bench.events.at(-1)?.data).toEqual({
      buyer_id: "b-1",
      old_status: "SUSPENDED",
      new_status: "ACTIVE",
    });
    expect(bench.events.filter(({ type }) => type === "payment_request.repayment.repaid")).toHaveLength(1);
  });

  test("a change whose event cannot be written has not happened", async () => {
    await bench.open({ database: file });
    bench.sandbox.createPaymentRequest({ payment_request_id: "p-1", due_date: "2024-01-01" });
    const notify = bench.sandbox.deliveries.notify;
    bench.sandbox.deliveries.notify = () => {
      throw new Error("the disk is full");
    };
    expect(() => bench.sandbox.changeBuyerStatus("b-1", "ACTIVE")).toThrow("the disk is full");
    expect(() => bench.sandbox.repay("p-1")).toThrow("the disk is full");
    bench.sandbox.deliveries.notify = notify;
    expect(() => bench.sandbox.buyerStatus("b-1")).toThrow(/no buyer/);
    expect(bench.sandbox.paymentRequest("p-1").status).toBe("PENDING_REPAYMENT");
    expect(await bench.get(`/sandbox/deliveries?state=pending`)).toMatchObject({ body: { deliveries: [] } });
  });
});
