import { GuardError } from "@countersign/core";
import { describe, expect, test } from "@jest/globals";
import { WriteLockError, faultOf } from "../../dist/sqlite/faults.js";
import { connect, drivers, temporaryFile } from "./connections.ts";

const extended = (primary: number, part: number) => primary + part * 256;

describe("faultOf()", () => {
  test.each([
    ["SQLITE_BUSY", 5, "conflict"],
    ["SQLITE_BUSY_SNAPSHOT", extended(5, 2), "conflict"],
    ["SQLITE_LOCKED", 6, "locked"],
    ["SQLITE_LOCKED_SHAREDCACHE", extended(6, 1), "locked"],
    ["SQLITE_NOMEM", 7, "unavailable"],
    ["SQLITE_READONLY", 8, "unavailable"],
    ["SQLITE_READONLY_DBMOVED", extended(8, 4), "unavailable"],
    ["SQLITE_IOERR", 10, "unavailable"],
    ["SQLITE_IOERR_FSYNC", extended(10, 4), "unavailable"],
    ["SQLITE_CORRUPT", 11, "unavailable"],
    ["SQLITE_FULL", 13, "unavailable"],
    ["SQLITE_CANTOPEN", 14, "unavailable"],
    ["SQLITE_PROTOCOL", 15, "unavailable"],
    ["SQLITE_NOTADB", 26, "unavailable"],
    ["SQLITE_CONSTRAINT", 19, "refused"],
    ["SQLITE_CONSTRAINT_UNIQUE", extended(19, 8), "refused"],
    ["SQLITE_ERROR", 1, "refused"],
    ["SQLITE_TOOBIG", 18, "refused"],
  ])("%s is %i in node:sqlite, and means %s", (code, errcode, fault) => {
    expect(faultOf(Object.assign(new Error("libsql, better-sqlite3"), { code }))).toBe(fault);
    const nodes = Object.assign(new Error("node:sqlite"), { code: "ERR_SQLITE_ERROR", errcode });
    expect(faultOf(nodes)).toBe(fault);
    expect(faultOf(new Error("of a library", { cause: nodes }))).toBe(fault);
  });

  test.each([
    ["an error of nobody's engine", new Error("no")],
    ["a code of another kind", Object.assign(new Error("no"), { code: "ECONNRESET" })],
    ["nothing", undefined],
    ["a text", "SQLITE_BUSY"],
    [
      "a refusal that the engine's error has caused",
      new GuardError({
        status: 500,
        code: "transaction-broken",
        message: "no",
        cause: Object.assign(new Error("busy"), { code: "SQLITE_BUSY" }),
      }),
    ],
  ])("says nothing about %s", (_case, error) => {
    expect(faultOf(error)).toBeUndefined();
  });

  test("a wait for the write lock that was too long is no conflict", () => {
    const cause = Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
    expect(faultOf(new WriteLockError("too long", { cause }))).toBe("locked");
  });

  test.each(drivers)("knows the errors of %s", (_driver, open) => {
    const file = temporaryFile();
    const [database, other] = [connect(file, open), connect(file, open)];
    const faultAt = (call: () => unknown) => {
      try {
        call();
      } catch (error) {
        return faultOf(error);
      }
      throw new Error("it must fail");
    };
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY) STRICT");
    database.exec("INSERT INTO t VALUES (1)");
    expect(faultAt(() => database.exec("INSERT INTO t VALUES (1)"))).toBe("refused");
    expect(faultAt(() => database.prepare("INSERT INTO t VALUES (1)").run())).toBe("refused");
    database.exec("BEGIN IMMEDIATE");
    other.exec("PRAGMA busy_timeout = 0");
    expect(faultAt(() => other.exec("BEGIN IMMEDIATE"))).toBe("conflict");
    database.exec("ROLLBACK; PRAGMA query_only = 1");
    expect(faultAt(() => database.exec("INSERT INTO t VALUES (2)"))).toBe("unavailable");
  });
});
