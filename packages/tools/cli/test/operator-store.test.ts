import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { expectOneLine, run, temporaryFolder } from "./cli-bench.ts";
import { platformDatabase } from "./operator-bench.ts";

const folder = temporaryFolder();
const file = (name: string): string => join(folder, name);

const commands: readonly (readonly string[])[] = [
  ["keys", "held"],
  ["keys", "list", "--state", "held"],
  ["keys", "resolve", "key", "--as", "done", "--yes"],
  ["prune"],
];

describe.each(commands)("countersign %s %s", (...command) => {
  test("creates no database where there is none", async () => {
    const ended = await run([...command, "--store-url", `sqlite:${file("typo.db")}`]);
    expectOneLine(ended, 2, /--store-url: .*typo\.db does not exist; /);
    expect(existsSync(file("typo.db"))).toBe(false);
  });

  test.each<[string, (path: string) => void, RegExp]>([
    ["an empty file", (path) => writeFileSync(path, ""), /belongs to another program/],
    ["a file that is no database", (path) => writeFileSync(path, "x".repeat(4096)), /is no SQLite database/],
    ["a folder", (path) => mkdirSync(path), /is no file/],
    [
      "another program's database",
      (path) => {
        const other = new Database(path);
        other.exec("CREATE TABLE countersign_schema (a); CREATE TABLE orders (a)");
        other.close();
      },
      /belongs to another program, or its tables do not begin with countersign_ \(--table\)/,
    ],
  ])("leaves %s as it is", async (name, make, line) => {
    const path = file(`${name} ${command.join(" ")}`);
    make(path);
    const before = existsSync(path) && name !== "a folder" ? readFileSync(path) : undefined;
    expectOneLine(await run([...command, "--store-url", `sqlite:${path}`]), 2, line);
    if (before !== undefined) expect(readFileSync(path)).toEqual(before);
  });

  const named = platformDatabase(file(`named-${command.join("-")}.db`));
  test.each<[string, string, RegExp]>([
    ["no store", "", /required option '--store-url <url>' not specified/],
    ["a store in memory", "--store-url memory:", /--store-url: a store in memory/],
    ["another scheme", "--store-url mssql://user:s3cret@h/d", /--store-url: expected sqlite:<path>/],
    ["a schema of SQLite", "--store-url sqlite:p.db --schema s", /--schema: means nothing for sqlite:/],
    ["a prefix of PostgreSQL", "--store-url postgres://h/d --prefix p", /--prefix: means nothing/],
    [
      "a schema of MariaDB",
      "--store-url mysql://u:s3cret@h/d --schema s",
      /--schema: means nothing for mysql:/,
    ],
    ["no database of MariaDB", "--store-url mysql://u:s3cret@h", /expected mysql:\/\/<host>\/<database>/],
    [
      "TLS of MariaDB that is none",
      "--store-url mysql://u:s3cret@h/d?ssl=x",
      /--store-url: Unknown SSL profile 'x'/,
    ],
    ["a bad table of MariaDB", "--store-url mysql://h/d --table=a`b", /--table must be/],
    ["a table of Redis", "--store-url redis://h --table t", /--table: means nothing for redis:/],
    ["a port that is none", "--store-url postgres://u:s3cret@h:99999/d", /--store-url: expected/],
    ["an escape that is none", "--store-url postgres://u:s3cret%zz@h/d", /--store-url: /],
    [
      "no database of Redis",
      "--store-url redis://:s3cret@127.0.0.1:1/a",
      /expected the number of a database/,
    ],
    [
      "a certificate file that is missing",
      "--store-url postgres://u:s3cret@h/d?sslrootcert=missing.pem",
      /--store-url: [^\n]*missing\.pem/,
    ],
    ["a bad prefix", "--store-url redis://127.0.0.1:1 --prefix=a\tb", /--prefix must be/],
    ["a bad table of PostgreSQL", "--store-url postgres://h/d --table=", /--table must be/],
    ["a bad table of SQLite", `--store-url ${named} --table=a\tb`, /--table must be/],
    ["a bad schema", "--store-url postgres://h/d --schema=a\nb", /--schema must be/],
  ])("%s ends with 2 and one line", async (_name, flags, line) => {
    const ended = await run([...command, ...flags.split(" ").filter(Boolean)]);
    expectOneLine(ended, 2, line);
    expect(ended.err).not.toContain("s3cret");
  });
});

describe("a store on SQLite", () => {
  test("is found by --table, in a path with any letters", async () => {
    const url = platformDatabase(file("pläne & keys?.db"), "Payouts");
    for (const table of ["Payouts", "payouts"]) {
      expect((await run(["keys", "held", "--store-url", url, "--table", table])).out).toMatch(
        /^ {2}why +why$/m,
      );
    }
    expect((await run(["keys", "held", "--store-url", url])).code).toBe(2);
  });

  test("that another connection has locked ends the command with 1", async () => {
    const url = platformDatabase(file("locked.db"));
    const locking = new Database(file("locked.db"));
    locking.exec("BEGIN EXCLUSIVE");
    try {
      const resolve = ["keys", "resolve", "key", "--as", "done", "--yes"];
      expect(await run([...resolve, "--store-url", url])).toMatchObject({
        code: 1,
        err: `error: ${url} is locked by another connection; try again\n`,
      });
    } finally {
      locking.close();
    }
  });
});
