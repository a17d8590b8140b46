import { resolve } from "node:path";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { messageOf, UsageError } from "../src/command-io.ts";
import { parseStoreUrl } from "../src/operator/store-target.ts";

describe("parseStoreUrl", () => {
  test.each([
    ["sqlite:/var/lib/p.db", "sqlite", "sqlite:/var/lib/p.db"],
    ["sqlite:p.db", "sqlite", `sqlite:${resolve("p.db")}`],
    ["sqlite:http://host/p.db", "sqlite", `sqlite:${resolve("http://host/p.db")}`],
    ["postgres://h/d", "postgres", "postgres://h/d"],
    ["postgresql://u@h:5433/d?sslmode=require", "postgres", "postgresql://u@h:5433/d"],
    ["postgres://u@%2Frun%2Fpostgresql/d", "postgres", "postgres://u@%2Frun%2Fpostgresql/d"],
    ["redis://h", "redis", "redis://h"],
    ["rediss://h:6380/2", "redis", "rediss://h:6380/2"],
  ])("reads %s", (text, engine, shown) => {
    expect(parseStoreUrl(text)).toMatchObject({ engine, shown });
  });

  test.each([
    ["postgres://user:s3cret@h/d", "postgres://user@h/d"],
    ["postgres://user:s3cret@h/d?password=s3cret&sslpassword=s3cret", "postgres://user@h/d"],
    ["postgres://user:pa%73s3cret%40@h/d", "postgres://user@h/d"],
    ["redis://:s3cret@h:6379/1", "redis://h:6379/1"],
    ["redis://default:s3cret@h", "redis://h"],
    ["rediss://s3cret@h", "rediss://h"],
  ])("shows %s without its credentials, and hides them in messages", (text, shown) => {
    const location = parseStoreUrl(text);
    expect(location).toMatchObject({ shown, address: text });
    const { password, username } = new URL(text);
    for (const secret of [password || username, decodeURIComponent(password || username)]) {
      expect(location.hide(`refused ${secret}; ${secret}`)).toBe("refused …; …");
    }
  });

  test.each([
    ["nothing", ""],
    ["a path", "/var/lib/p.db"],
    ["another scheme", "mysql://user:s3cret@h/d"],
    ["memory", "memory:"],
    ["SQLite without a path", "sqlite:"],
    ["SQLite with a blank path", "sqlite: "],
    ["SQLite in memory", "sqlite::memory:"],
    ["Redis without a host", "redis://"],
    ["Redis without a host, with a database", "redis:///1"],
    ["a slash in the password", "postgres://user:s3cret/s3cret@h/d"],
    ["a slash behind a digit of the password", "postgres://user:1/s3cret@h/d"],
    ["a question mark in the password", "postgres://user:1?s3cret@h/d"],
    ["a number sign in the password", "postgres://user:1#s3cret@h/d"],
    ["a number sign in the password of Redis", "redis://:s3cret#@h"],
    ["an escape that is none", "postgres://user:s3cret%zz@h/d"],
    ["a line end in the port", "postgres://user:s3cret@h:a\nb/d"],
  ])("refuses %s, and shows nothing of it", (_name, text) => {
    expect(() => parseStoreUrl(text)).toThrow(UsageError);
    expect(() => parseStoreUrl(text)).toThrow(/^--store-url: [^\n]*$/);
    expect(() => parseStoreUrl(text)).not.toThrow(/s3cret/);
  });

  test("shows no password, whatever it is", () => {
    const password = fc
      .string({ unit: "binary", minLength: 8 })
      .filter((text) => !"postgres://user@host".includes(text));
    const form = fc.constantFrom<(text: string) => string>(
      (text) => `postgres://user:${text}@host/db`,
      (text) => `redis://:${text}@host`,
      (text) => `redis://${text}@host`,
      (text) => `postgres://host/db?password=${text}`,
    );
    fc.assert(
      fc.property(password, form, (text, urlOf) => {
        for (const written of [text, encodedUri(text)]) {
          let said: string;
          try {
            said = parseStoreUrl(urlOf(written)).shown;
          } catch (error) {
            expect(error).toBeInstanceOf(UsageError);
            said = messageOf(error);
          }
          expect(said).not.toContain(written);
        }
      }),
    );
  });
});

function encodedUri(text: string): string {
  return encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, "?"));
}
