import { describe, expect, test } from "@jest/globals";
import type { SqlGrammar } from "../../src/transactions/sql-reader.ts";
import { refusedText } from "../../src/transactions/transaction-texts.ts";
import {
  array,
  assert,
  constant,
  constantFrom,
  mixedCase,
  oneof,
  property,
  type Arbitrary,
} from "fast-check";

const ends = /is not the handler's/;
const commits = /is not known to leave the handler's transaction open/;
const unread = /cannot be read for certain/;

const everywhere: readonly (readonly [string, RegExp | undefined])[] = [
  [
    "COMMIT",
    /^COMMIT is not the handler's: the transaction commits when the handler returns, and rolls back when it/,
  ],
  ["commit;", ends],
  ["\n\t -- why\n /* not */ Commit work", ends],
  [";;COMMIT", ends],
  ["COMMIT AND CHAIN", ends],
  ["BEGIN", ends],
  ["BEGIN TRANSACTION", ends],
  ["ROLLBACK", ends],
  ["ROLLBACK;", ends],
  ["rollback work", ends],
  ["ROLLBACK AND CHAIN", ends],
  ["RELEASE SAVEPOINT countersign", /the savepoint countersign is not the handler's/],
  ["ROLLBACK TO SAVEPOINT countersign", ends],
  ["ROLLBACK TO COUNTERSIGN_probe", ends],
  ["ROLLBACK WORK TO countersign", ends],
  ["SAVEPOINT countersign", ends],
  ["ROLLBACK TO", unread],
  ["SELECT 1; COMMIT", ends],
  ["SELECT ';'; COMMIT", ends],
  ["SELECT ';COMMIT'", undefined],
  ["SELECT 'it''s; COMMIT'; SELECT 2", undefined],
  ['SELECT 1 AS "; COMMIT; "; SELECT 2', undefined],
  ["SELECT 1; /* ; COMMIT */ SELECT 2 -- ; COMMIT", undefined],
  ["SELECT 1;\n-- COMMIT\n", undefined],
  ["SELECT 1; SELECT 'open; COMMIT", unread],
  ["SELECT 'open; COMMIT", unread],
  ["SELECT 1; /* open; COMMIT", unread],
  ["", undefined],
  [" ; ", undefined],
  ["-- nothing", undefined],
  ["SELECT 1", undefined],
  ["(SELECT 1)", undefined],
  ["INSERT INTO payouts VALUES ('COMMIT', 'ROLLBACK')", undefined],
  ["UPDATE commit SET rollback = 1", undefined],
  ["SAVEPOINT a", undefined],
  ["savepoint trx1;", undefined],
  ["ROLLBACK TO a", undefined],
  ["ROLLBACK TO SAVEPOINT a", undefined],
  ["release savepoint sp1", undefined],
  ["SAVEPOINT a; INSERT INTO t VALUES (1); RELEASE SAVEPOINT a", undefined],
];

const own: Readonly<Record<SqlGrammar, readonly (readonly [string, RegExp | undefined])[]>> = {
  postgresql: [
    ["START TRANSACTION", ends],
    ["END", ends],
    ["ABORT", ends],
    ["PREPARE TRANSACTION 'a'", ends],
    ["COMMIT PREPARED 'a'", ends],
    ["ROLLBACK PREPARED 'a'", ends],
    ['RELEASE "countersign"', ends],
    ['RELEASE U&"\\0063ountersign"', unread],
    ["ROLLBACK TRANSACTION TO SAVEPOINT countersign", ends],
    ["/* /* nested */ SELECT 1; */ COMMIT", ends],
    ["SELECT 1 /* /* */ ; COMMIT */; SELECT 2", undefined],
    ["SELECT 1 -- as here\r; COMMIT", ends],
    ["SELECT $$; COMMIT; $$; SELECT 2", undefined],
    ["SELECT $a$; COMMIT; $$ $b$; $a$; SELECT 2", undefined],
    ["SELECT a$b$; COMMIT; --$b$", ends],
    ["SELECT $1$a$; COMMIT; $a$; SELECT 1", undefined],
    ["SELECT $1; COMMIT; SELECT $2", ends],
    ["SELECT $é$; COMMIT; $é$; SELECT 1", undefined],
    ["SELECT '\\'; COMMIT; --'", ends],
    ["SELECT E'\\'; COMMIT; --'; SELECT 1", undefined],
    ["SELECT e'a'\n 'b\\'; COMMIT; --'; SELECT 1", undefined],
    ["SELECT e'a' -- on\n 'b\\'; COMMIT; --'; SELECT 1", undefined],
    ["SELECT name'\\'; COMMIT; --'", ends],
    ["SELECT U&'\\'; COMMIT; --'", ends],
    ["SELECT 1 # 2; COMMIT", ends],
    ["SELECT 1 --1; COMMIT", undefined],
    ["SELECT '[' || a[1]; COMMIT", ends],
    ["SELECT `; COMMIT", ends],
    ["PREPARE a AS SELECT 1", undefined],
    ["EXECUTE a", undefined],
    ["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", undefined],
    ["SET LOCAL lock_timeout = 1", undefined],
    ["CREATE TABLE a (id text); DROP TABLE a", undefined],
    ["DO $$ BEGIN PERFORM 1; END $$", undefined],
    ["CALL pay(1)", undefined],
    ["LOCK TABLE a", undefined],
    ["SELECT CASE WHEN true THEN 1 END; SELECT 2", undefined],
    ["SELECT 1; \u0001 COMMIT", unread],
  ],
  sqlite: [
    ["END", ends],
    ["END TRANSACTION", ends],
    ["BEGIN IMMEDIATE", ends],
    ["\ufeffCOMMIT", ends],
    ["RELEASE countersign", ends],
    ["RELEASE 'countersign'", ends],
    ["RELEASE [countersign]", ends],
    ["ROLLBACK TRANSACTION TO countersign", ends],
    ["ROLLBACK TRANSACTION", ends],
    ["SELECT [; COMMIT; ]; SELECT 2", undefined],
    ["SELECT `; COMMIT; `; SELECT 2", undefined],
    ["SELECT '\\'; COMMIT; --'", ends],
    ["SELECT 1 /* /* */; COMMIT; --*/", ends],
    ["SELECT $a('); COMMIT; --')", unread],
    ["SELECT $a::b, @c, :d, ?1; SELECT 2", undefined],
    ["SELECT $a; COMMIT", ends],
    ["RELEASE a", undefined],
    ["CREATE TABLE a (id TEXT); DROP TABLE a; VACUUM", undefined],
    ["CREATE TRIGGER a AFTER INSERT ON b BEGIN DELETE FROM c; SELECT 1; END; SELECT 2", undefined],
    ["CREATE TEMP TRIGGER a AFTER INSERT ON b BEGIN DELETE FROM c; END", undefined],
    ["CREATE TRIGGER a AFTER INSERT ON b BEGIN DELETE FROM c; END; COMMIT", ends],
    ["CREATE TRIGGER a AFTER INSERT ON b BEGIN DELETE FROM c; END; END", ends],
    ["CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT 'open; END; COMMIT", unread],
    ["CREATE VIEW a AS SELECT 1; COMMIT", ends],
    ["PRAGMA user_version", undefined],
  ],
  mysql: [
    ["START TRANSACTION", ends],
    ["# why\nCOMMIT", ends],
    ["/*!50000 COMMIT */", unread],
    ["/*M! COMMIT */", unread],
    ["/*!99999 SELECT */ COMMIT", unread],
    ["SELECT /*!50000 SQL_NO_CACHE */ 1", undefined],
    ["SELECT /*!50000 1 */; SELECT 2", undefined],
    ["SELECT 1 /*!50000 ; COMMIT */", unread],
    ["SELECT 1 /*!99999 ' */; COMMIT; -- ' */", unread],
    ["SELECT 1 /*!99999 1 */; COMMIT", ends],
    ["SELECT 1 /*!99999 open; COMMIT", unread],
    ["SELECT /*+ hint */ 1", undefined],
    ["CREATE /*!50000 TEMPORARY */ TABLE a (id INT)", commits],
    ["BEGIN NOT ATOMIC COMMIT; END", ends],
    ["IF 1 THEN COMMIT; END IF", commits],
    ["FOR i IN 1..2 DO COMMIT; END FOR", commits],
    ["a: LOOP COMMIT; END LOOP", commits],
    ["EXECUTE IMMEDIATE 'COMMIT'", commits],
    ["PREPARE a FROM 'COMMIT'", commits],
    ["EXECUTE a", commits],
    ["SET STATEMENT max_statement_time = 1 FOR COMMIT", ends],
    ["SET STATEMENT max_statement_time = (1) FOR CREATE TABLE a (id INT)", commits],
    ["SET STATEMENT max_statement_time = 1 FOR SELECT 1 FOR UPDATE", undefined],
    ["SET STATEMENT max_statement_time = 1", unread],
    ["SET autocommit = 1", /SET autocommit is not the handler's/],
    ["SET AUTOCOMMIT=ON", ends],
    ["SET SESSION autocommit = 0", ends],
    ["SET @@autocommit = 1", ends],
    ["SET @@session.autocommit := 1", ends],
    ["SET @a = 1, `autocommit` = 1", ends],
    ["SET /*!50000 autocommit = 1 */", unread],
    ["SET ?? = 1", unread],
    ["SET PASSWORD = 'a'", commits],
    ["SET DEFAULT ROLE a", commits],
    ["SET @old = @@autocommit", undefined],
    ["SET @a = 1, SESSION sql_mode = ''", undefined],
    ["SET NAMES utf8mb4", undefined],
    ["SET foreign_key_checks = 0; SELECT 1", undefined],
    ["SET foreign_key_checks = 0; COMMIT", ends],
    [
      "CREATE TABLE a (id INT)",
      /^CREATE TABLE is not known to leave the handler's transaction open on MySQL and MariaDB/,
    ],
    ["CREATE OR REPLACE TABLE a (id INT)", commits],
    ["CREATE INDEX a ON b (c)", commits],
    ["CREATE TEMPORARY SEQUENCE a", commits],
    ["ALTER TABLE a ADD COLUMN b INT", commits],
    ["DROP TABLE a", commits],
    ["RENAME TABLE a TO b", commits],
    ["TRUNCATE a", commits],
    ["LOCK TABLES a READ", /^LOCK TABLES is not known/],
    ["UNLOCK TABLES", commits],
    ["FLUSH TABLES", commits],
    ["ANALYZE TABLE a", commits],
    ["ANALYZE LOCAL TABLE a", commits],
    ["OPTIMIZE TABLE a", commits],
    ["REPAIR TABLE a", commits],
    ["CHECK TABLE a", commits],
    ["GRANT SELECT ON a TO b", commits],
    ["REVOKE SELECT ON a FROM b", commits],
    ["LOAD INDEX INTO CACHE a", commits],
    ["XA BEGIN 'a'", commits],
    ["(COMMIT)", ends],
    ["? ", unread],
    ["`COMMIT`", unread],
    ["ROLLBACK TO ??", unread],
    ["ROLLBACK TO `countersign`", ends],
    ["SAVEPOINT `a`", undefined],
    ["SELECT 1; ??", unread],
    ["SELECT '\\'; COMMIT; --'; SELECT 1", undefined],
    ['SELECT "\\"; COMMIT; --"; SELECT 1', undefined],
    ["SELECT `\\`; COMMIT; --`", ends],
    ["SELECT 1 --1; COMMIT", ends],
    ["SELECT 1 -- 1; COMMIT", undefined],
    ["SELECT 1 --\u0001; COMMIT\n; SELECT 1", undefined],
    ["SELECT 1 # 1; COMMIT", undefined],
    ["SELECT 1 /* /* */; COMMIT; -- */", ends],
    ["SELECT $$; COMMIT; $$", ends],
    ["CREATE TEMPORARY TABLE a (id INT)", undefined],
    ["CREATE OR REPLACE TEMPORARY TABLE a (id INT)", undefined],
    ["DROP TEMPORARY TABLE a", undefined],
    ["CALL pay(1)", undefined],
    ["ANALYZE FORMAT=JSON SELECT 1", undefined],
    ["LOAD DATA INFILE 'a' INTO TABLE b", undefined],
    ["WITH a AS (SELECT 1) SELECT * FROM a", undefined],
    ["((SELECT 1) UNION (SELECT 2))", undefined],
    ["REPLACE INTO a VALUES (1)", undefined],
    ["SHOW TABLES", undefined],
    ["KILL CONNECTION_ID()", undefined],
  ],
};

describe.each(["postgresql", "mysql", "sqlite"] as const)(
  "the texts of a handler's transaction on %s",
  (dialect) => {
    test.each([...everywhere, ...own[dialect]])("%j", (text, expected) => {
      const reason = refusedText(dialect, text);
      if (expected === undefined) expect(reason).toBeUndefined();
      else expect(reason).toMatch(expected);
    });

    const harmless = hiding(dialect);
    const blank = constantFrom(" ", "\n", "\t", " \r\n ", "/* COMMIT; */", "-- COMMIT;\n");
    const blanks = array(blank, { maxLength: 3 }).map((all) => ` ${all.join("")}`);
    const select = array(harmless, { minLength: 1, maxLength: 5 }).map(
      (parts) => `SELECT ${parts.join(" , ")}`,
    );
    const several = array(select, { minLength: 1, maxLength: 3 }).map((all) => all.join(" ;"));
    const end = constantFrom("COMMIT", "ROLLBACK", "BEGIN").chain((word) => mixedCase(constant(word)));

    test("are taken whatever stands in quotes and comments", () => {
      assert(
        property(blanks, several, blanks, (before, text, after) => {
          expect(refusedText(dialect, `${before}${text}${after}`)).toBeUndefined();
        }),
      );
    });

    test("are refused behind whatever stands in quotes and comments", () => {
      assert(
        property(several, blanks, end, constantFrom("", ";", " ; SELECT 1"), (text, between, word, after) => {
          expect(refusedText(dialect, `${text};${between}${word}${after}`)).toMatch(ends);
          expect(refusedText(dialect, `${between}${word}${after}`)).toMatch(ends);
        }),
      );
    });

    test("are read without an error, and in time that grows with the text alone", () => {
      const signs = constantFrom(
        ...Array.from("'\"`$[]();-/*!#\\\n aE1:@?"),
        "COMMIT",
        "SET ",
        "FOR ",
        "CREATE TRIGGER ",
      );
      assert(
        property(array(signs, { maxLength: 60 }), (parts) => {
          expect(["string", "undefined"]).toContain(typeof refusedText(dialect, parts.join("")));
        }),
      );
      const begun = performance.now();
      for (const part of ["'", "/*", "$a$", "; SELECT 1", "SET @a = ", "("])
        refusedText(dialect, part.repeat(50_000));
      expect(performance.now() - begun).toBeLessThan(2_000);
    });
  },
);

/** Expressions and comments of the engine that hide any text. */
function hiding(dialect: SqlGrammar): Arbitrary<string> {
  const inside = array(
    constantFrom("; COMMIT; ", "'", '"', "`", "\\", "--", "#", "/*", "*/", "$$", "$a$", "]", "\n", "x", "E'"),
  ).map((parts) => parts.join(""));
  const doubled = (quote: string, text: string): string =>
    `${quote}${text.replaceAll(quote, quote + quote)}${quote}`;
  const escaped = (quote: string, text: string): string =>
    `${quote}${text.replaceAll("\\", "\\\\").replaceAll(quote, `\\${quote}`)}${quote}`;
  const comment = inside.map((text) => `1 /* ${text.replaceAll(/[*/!]/g, "")} */`);
  const line = inside.map((text) => `1 -- ${text.replaceAll("\n", "")}\n`);
  const common = [constant("1"), constant("commit"), constant("a.rollback"), comment, line];
  if (dialect === "mysql") {
    return oneof(
      ...common,
      inside.map((text) => escaped("'", text)),
      inside.map((text) => escaped('"', text)),
      inside.map((text) => doubled("'", text.replaceAll("\\", "\\\\"))),
      inside.map((text) => doubled("`", text)),
      inside.map((text) => `1 #${text.replaceAll("\n", "")}\n`),
    );
  }
  if (dialect === "sqlite") {
    return oneof(
      ...common,
      ...["'", '"', "`"].map((quote) => inside.map((text) => doubled(quote, text))),
      inside.map((text) => `[${text.replaceAll("]", "")}]`),
    );
  }
  return oneof(
    ...common,
    ...["'", '"'].map((quote) => inside.map((text) => doubled(quote, text))),
    inside.map((text) => `E${escaped("'", text)}`),
    inside.map((text) => `$$${text.replaceAll("$", "")}$$`),
    inside.map((text) => `$tag$${text}$tag$`),
    inside.map((text) => `1 /* a /* ${text.replaceAll(/[*/]/g, "")} */ ; COMMIT */`),
  );
}
