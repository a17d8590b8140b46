import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { wantsColours } from "../src/command-io.ts";
import { CliBench, run } from "./cli-bench.ts";

const bench = new CliBench();
beforeAll(() => bench.open());
afterAll(() => bench.close());

describe("bad usage", () => {
  const missing = join(bench.directory, "missing");
  test.each<[string, () => string[], RegExp]>([
    ["no command", () => ["--nonsense"], /unknown option '--nonsense'/],
    ["an unknown command", () => ["pay"], /unknown command 'pay'/],
    ["no --url", () => ["payout", "--key", bench.key, "--keyid", "test"], /required option '--url <url>'/],
    ["a bad URL", () => bench.payout("--url", "localhost:3000"), /the URL must be http/],
    ["a path that cannot be signed", () => bench.payout("--url", "https://h/a/../b"), /request target/],
    [
      "a missing key file",
      () => bench.payout("--key", missing),
      /--key .*missing: cannot be read \(ENOENT\)/,
    ],
    ["a key file that is no PEM", () => bench.payout("--key", bench.file("no.pem", "hello")), /PEM form/],
    [
      "the public key",
      () => bench.payout("--key", join(bench.directory, "test.public.pem")),
      /got a PUBLIC KEY/,
    ],
    ["a keyid outside ASCII", () => bench.payout("--keyid", "clé"), /keyid/],
    ["a missing body file", () => bench.payout("--file", missing), /--file .*missing: cannot be read/],
    ["a bench.directory as body", () => bench.payout("--file", bench.directory), /cannot be read \(EISDIR\)/],
    [
      "a body that is no JSON",
      () => bench.payout("--file", bench.file("bad.json", "{")),
      /is not JSON in UTF-8/,
    ],
    [
      "a file and a field",
      () => bench.payout("--file", bench.file("b.json", "{}"), "--iban", "X"),
      /cannot be used with option '--file/,
    ],
    ["an amount that is no JSON", () => bench.payout("--amount", "10.00 EUR"), /--amount: is not JSON/],
    [
      "an amount that is no object",
      () => bench.payout("--amount", "10.00"),
      /--amount: is not JSON of an object/,
    ],
    [
      "an unknown part",
      () => bench.payout("--tamper", "time"),
      /Allowed choices are body, digest, signature, path/,
    ],
    ["two variants", () => bench.payout("--replay", "--tamper", "body"), /cannot be used with option/],
    [
      "a bad --concurrent",
      () => bench.payout("--concurrent", "1"),
      /--concurrent: expected an integer from 2 to 500/,
    ],
    ["a bad --timeout", () => bench.payout("--timeout", "1s"), /--timeout: expected an integer/],
    ["a bad --expect", () => bench.payout("--expect", "ok"), /--expect: expected statuses/],
    ["a bad --header", () => bench.payout("--header", "X-A"), /--header: expected 'name: value'/],
    [
      "a header that breaks the line",
      () => bench.payout("--header", "X-A: a\r\nX-B: b"),
      /Invalid character in header content/,
    ],
    [
      "a bad --local-address",
      () => bench.payout("--local-address", "here"),
      /--local-address: expected an IP address/,
    ],
    [
      "a --ca file without certificate",
      () => bench.payout("--ca", bench.key),
      /--ca .*: holds no certificate/,
    ],
    ["a missing --ca file", () => bench.payout("--ca", missing), /--ca .*missing: cannot be read/],
  ])("%s ends with 2 and one line", async (_name, args, line) => {
    const { code, out, err } = await run(args());
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(line);
    expect(err).toMatch(/^error: [^\n]*\n$/);
  });

  test("sends nothing", async () => {
    const before = bench.platform.received.length;
    await run(bench.payout("--timeout", "0"));
    await run(bench.payout("--expect", "ok"));
    expect(bench.platform.received).toHaveLength(before);
  });
});

describe("help", () => {
  test.each([
    [["--help"], /Usage: countersign[\s\S]*payout[\s\S]*keygen --keyid test/],
    [["payout", "--help"], /Examples:[\s\S]*--tamper body[\s\S]*Exit codes:/],
    [["keygen", "--help"], /--out <directory>/],
    [["--version"], /^\d+\.\d+\.\d+\n$/],
  ])("%p is printed and ends with 0", async (args, text) => {
    expect(await run(args)).toMatchObject({ code: 0, out: expect.stringMatching(text), err: "" });
  });

  test("a bare countersign shows the usage as an error", async () => {
    expect(await run([])).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(/^Usage: countersign/),
    });
  });

  test.each([
    ["a terminal", true, {}, true],
    ["a pipe", false, {}, false],
    ["NO_COLOR", true, { NO_COLOR: "1" }, false],
    ["an empty NO_COLOR", true, { NO_COLOR: "" }, true],
    ["a dumb terminal", true, { TERM: "dumb" }, false],
  ])("colours for %s: %#", (_name, isTerminal, env, expected) => {
    expect(wantsColours(isTerminal, env)).toBe(expected);
  });
});
