import { existsSync, statSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createPayoutInstruction } from "@countersign/devtools/sandbox";
import { CliBench, expectOneLine, expectRun, run } from "./cli-bench.ts";
import { withServer } from "@countersign/test-support/servers/wire.ts";

const bench = new CliBench();
beforeAll(() => bench.open());
afterAll(() => bench.close());

describe("countersign keygen", () => {
  test("says where the files are", async () => {
    const { code, out } = await run(["keygen", "--out", join(bench.directory, "k2"), "--keyid", "k2"]);
    expect(code).toBe(0);
    expect(out).toContain(join(bench.directory, "k2", "k2.private.pem"));
    expect(out).not.toContain("PRIVATE KEY");
  });

  test("replaces a key by --force only", async () => {
    const args = ["keygen", "--out", join(bench.directory, "k4"), "--keyid", "k4"];
    await run(args);
    expect(await run(args)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(/^error: .*--force replaces it\n$/),
    });
    expect(await run([...args, "--force"])).toMatchObject({ code: 0 });
  });

  test.each(["../up", "a/b", "", "clé"])("refuses the keyid %p and makes no directory", async (keyid) => {
    const out = join(bench.directory, "never");
    expectRun(await run(["keygen", "--out", out, "--keyid", keyid]), 2, { err: /^error: keyid [^\n]*\n$/ });
    expect(existsSync(out)).toBe(false);
  });
});

describe("countersign payout", () => {
  test("tells what was sent, what came back and what it means", async () => {
    const { out } = await run(bench.payout());
    expect(out).toContain(`POST /api/v1/transaction to ${new URL(bench.platform.url).host} (plain)`);
    const nonce = bench.platform.received.at(-1)?.params["nonce"] ?? "none";
    for (const part of [
      nonce,
      "keyid             test",
      "200 OK, expected 2xx",
      "acknowledged",
      '{"status":200}',
      "plain: as expected",
    ]) {
      expect(out).toContain(part);
    }
  });

  test("sends a file byte for byte", async () => {
    const text = ' {\r\n"idempotency_key": "file.\\u0061.b", "amount": 1.10 }\n';
    await run(bench.payout("--file", bench.file("body.json", text)));
    expect(bench.platform.received.at(-1)?.body.toString()).toBe(text);
    expect(bench.platform.received.at(-1)).toMatchObject({ signatureValid: true, digestValid: true });
  });

  test("puts flags into the sample instruction", async () => {
    const who = "--business-id b7 --iban NL91ABNA0417164300 --bic ABNANL2A --name Seven".split(" ");
    const what = ["--amount", '{"minor":700}', "--reference", "Order 7", "--reference-field", "remittance"];
    await run(bench.payout("--idempotency-key", "op.from.to", ...who, ...what));
    expect(JSON.parse(bench.platform.received.at(-1)?.body.toString() ?? "")).toEqual({
      idempotency_key: "op.from.to",
      business_id: "b7",
      beneficiary: { iban: "NL91ABNA0417164300", bic: "ABNANL2A", name: "Seven" },
      amount: { minor: 700 },
      remittance: "Order 7",
    });
  });

  test("sends and signs the amount byte for byte", async () => {
    const amount = '{ "value":10.10,"minor":1.0e3, "big":12345678901234567890 }';
    const { code, out } = await run(bench.payout("--amount", amount, "--json"));
    expect(code).toBe(0);
    const received = bench.platform.received.at(-1);
    expect(received?.body.toString()).toContain(`"amount":${amount},"reference":`);
    expect(received).toMatchObject({ signatureValid: true, digestValid: true });
    expect(JSON.parse(out)).toMatchObject({ outcomes: [{ request: { body: received?.body.toString() } }] });
  });

  test("sends header fields, another target and from another address", async () => {
    const args = ["--header", "X-Forwarded-For: 192.0.2.9", "--header", "X-Trace:a:b", "--target", "/other"];
    await run(bench.payout(...args, "--local-address", "127.0.0.2"));
    expect(bench.platform.received.at(-1)).toMatchObject({
      headers: { "x-forwarded-for": "192.0.2.9", "x-trace": "a:b" },
      target: "/other",
      remoteAddress: "127.0.0.2",
      signatureValid: false,
    });
  });

  test("sends at once with --concurrent", async () => {
    const { code, out } = await run(bench.payout("--concurrent", "3"));
    expect(code).toBe(0);
    expect(out.match(/409 Conflict/g)).toHaveLength(2);
  });

  test("says what to run after a 401, with what is known, and leads to an explanation", async () => {
    const [unknown, file] = [["--keyid", "someone"], join(bench.directory, "sent.http")];
    const { code, out } = await run(bench.payout(...unknown, "--save", file));
    expect(code).toBe(1);
    const publicKey = bench.key.replace("private", "public");
    expect(out).toContain(`\n  countersign doctor --url ${bench.platform.url}\n`);
    expect(out).toContain("its inspector");
    const [, words = ""] = /^ {2}countersign (explain .*)$/m.exec(out) ?? [];
    expect(words).toBe(`explain ${file} --key someone=${publicKey}`);
    expect(await run(words.split(" "))).toMatchObject({ code: 0, out: expect.stringContaining("verifies") });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await run(bench.payout(...unknown))).out).toMatch(/ explain request\.http --key someone=/);
    for (const others of [["--tamper", "body"], [...unknown, "--json"], []])
      expect((await run(bench.payout(...others))).out).not.toContain("A 401 does not say why");
  });

  test("shows the answer cut short, and Retry-After", async () => {
    const hostile: RequestListener = (_req, res) => {
      const body = `\u001B[2Jfake prompt\r\u009B31m\n${"y".repeat(5000)}`;
      res.writeHead(503, { "retry-after": "7" }).end(body);
    };
    const { code, out } = await withServer(hostile, (port) =>
      run(bench.payout("--url", `http://127.0.0.1:${port}/pay`)),
    );
    expect(code).toBe(1);
    expect(out).toContain("\\u{1b}[2Jfake prompt\\u{d}\\u{9b}31m\n");
    for (const part of ["503 Service Unavailable, expected 2xx", "Retry-After: 7", "plain: not as expected"])
      expect(out).toContain(part);
    expect(out).toMatch(/y \[cut\]\n/);
    expect(out.length).toBeLessThan(3000);
  });

  test("prints one JSON document for programs, without the private key", async () => {
    const { code, out, err } = await bench.spawned(bench.payout("--duplicate", "--json"), {
      FORCE_COLOR: "1",
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out)).toMatchObject({
      variant: "duplicate",
      asExpected: true,
      reached: true,
      outcomes: [
        { name: "first", answer: { status: 200 }, error: null, expected: ["2xx"], asExpected: true },
        {
          name: "duplicate",
          answer: { status: 409, meaning: expect.stringMatching(/already processed/) },
          signature: { keyid: "test" },
        },
      ],
    });
    expect(out).not.toContain("PRIVATE KEY");
  });

  test.each<[string, readonly string[], number]>([
    ["an unexpected acknowledgement", ["--expect", "401"], 1],
    ["an unknown keyid", ["--keyid", "nobody"], 1],
    ["an unknown keyid that is expected", ["--keyid", "nobody", "--expect", "401"], 0],
  ])("ends after %s with the exit code", async (_name, args, code) => {
    expect(await run(bench.payout(...args))).toMatchObject({ code, err: "" });
  });

  test("shows every field that it sends, once, with the digits that it sends", async () => {
    const amount = '{"value":10.10,"minor":[],"fees":[1e3,true]}';
    const named = ["--idempotency-key", "op.a\u0007.b", "--name", "A\nB", "--amount", amount];
    const { out } = await run(bench.payout(...named, "--duplicate"));
    const rows = out.split("\n").slice(1, 11);
    expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
      ["idempotency_key", String.raw`op.a\u{7}.b`],
      ["business_id", "business-1"],
      ["beneficiary.iban", "DE89370400440532013000"],
      ["beneficiary.bic", "COBADEFFXXX"],
      ["beneficiary.name", String.raw`A\nB`],
      ["amount.value", "10.10"],
      ["amount.minor", "[]"],
      ["amount.fees.0", "1e3"],
      ["amount.fees.1", "true"],
      ["reference", "Funding payout, sample"],
    ]);
    expect(out.match(/business-1/g)).toHaveLength(1);
  });

  test("counts the fields of a file after forty", async () => {
    const list = JSON.stringify(Array.from({ length: 50 }, (_, index) => index));
    const { out } = await run(bench.payout("--file", bench.file("list.json", list)));
    expect(out).toMatch(/\n {2}39 +39\n {2}\.\.\. +and 10 more\n/);
  });

  test("sends by default what --help says, which is the sample of the sandbox", async () => {
    const { out: help } = await run("payout --help");
    const { out } = await run(bench.payout("--json"));
    const { outcomes } = JSON.parse(out) as { outcomes: { request: { body: string } }[] };
    const sent = JSON.parse(outcomes[0]?.request.body ?? "") as Record<string, unknown>;
    const { idempotency_key: _fresh, ...sample } = createPayoutInstruction();
    expect(sent).toMatchObject(sample);
    const said = help.replaceAll(/\s+/g, " ");
    const { beneficiary, amount, ...texts } = sample;
    for (const value of [...Object.values(beneficiary), JSON.stringify(amount), ...Object.values(texts)])
      expect(said).toContain(`(default: ${String(value)})`);
    expect(said).toContain("name of the field that holds the reference text (default: reference)");
  });

  test("says after an unexpected 401 how to act as the proxy, unless it did", async () => {
    const unknown = bench.payout("--keyid", "someone");
    expect((await run(unknown)).out).toMatch(
      /If it is ip-is-proxy or ip-not-allowed, [^]* {2}--forwarded-for 192\.0\.2\.10\n/,
    );
    expect((await run([...unknown, "--forwarded-for", "192.0.2.10"])).out).not.toContain("ip-is-proxy");
  });

  test("--forwarded-for sends what a proxy says of a request over https", async () => {
    await run(bench.payout("--forwarded-for", "192.0.2.10"));
    expect(bench.platform.received.at(-1)).toMatchObject({
      headers: { "x-forwarded-for": "192.0.2.10", "x-forwarded-proto": "https" },
      signatureValid: true,
    });
  });

  test("reports a failure to reach in text and as JSON", async () => {
    const closed = bench.payout("--url", "http://127.0.0.1:1/pay");
    expectRun(await run(closed), 3, {
      out: /nothing listens at http:\/\/127\.0\.0\.1:1 .*plain: no answer/s,
    });
    const { code, out } = await run([...closed, "--json"]);
    expect(code).toBe(3);
    expect(JSON.parse(out)).toMatchObject({
      reached: false,
      outcomes: [{ answer: null, error: { code: "connection-refused" } }],
    });
  });
});

describe("bad usage of countersign payout", () => {
  const missing = join(bench.directory, "missing");
  const publicKey = join(bench.directory, "test.public.pem");
  test.each<[string, () => string[], RegExp]>([
    ["no --url", () => ["payout", "--key", bench.key, "--keyid", "test"], /required option '--url <url>'/],
    ["a bad URL", () => bench.payout("--url", "localhost:3000"), /the URL must be http/],
    ["a path that cannot be signed", () => bench.payout("--url", "https://h/a/../b"), /request target/],
    ["a missing key file", () => bench.payout("--key", missing), /--key .*missing: cannot be read \(ENOENT/],
    ["a key file that is no PEM", () => bench.payout("--key", bench.file("no.pem", "hello")), /PEM form/],
    ["the public key", () => bench.payout("--key", publicKey), /got a PUBLIC KEY/],
    [
      "a proxy without an address",
      () => bench.payout("--forwarded-for", "me"),
      /--forwarded-for: expected an IP/,
    ],
    ["a keyid outside ASCII", () => bench.payout("--keyid", "clé"), /keyid/],
    ["a directory as body", () => bench.payout("--file", bench.directory), /cannot be read \(EISDIR\)/],
    ["no JSON as body", () => bench.payout("--file", bench.file("bad.json", "{")), /is not JSON in UTF-8/],
    [
      "a file and a field",
      () => bench.payout("--file", bench.file("b.json", "{}"), "--iban", "X"),
      /cannot be used with option '--file/,
    ],
    ["an amount that is no JSON", () => bench.payout("--amount", "10.00 EUR"), /--amount: is not JSON/],
    ["an amount that is no object", () => bench.payout("--amount", "10.00"), /is not JSON of an object/],
    ["an unknown part", () => bench.payout("--tamper", "time"), /are body, digest, signature, path/],
    ["two variants", () => bench.payout("--replay", "--tamper", "body"), /cannot be used with option/],
    ["a bad --concurrent", () => bench.payout("--concurrent", "1"), /expected an integer from 2 to 500/],
    ["a bad --timeout", () => bench.payout("--timeout", "0"), /--timeout: expected an integer/],
    ["a bad --expect", () => bench.payout("--expect", "ok"), /--expect: expected statuses/],
    ["a bad --header", () => bench.payout("--header", "X-A"), /--header: expected 'name: value'/],
    ["a header of two lines", () => bench.payout("--header", "X-A: a\r\nX-B: b"), /Invalid character in/],
    ["a bad --local-address", () => bench.payout("--local-address", "here"), /expected an IP address/],
    ["a --ca without certificate", () => bench.payout("--ca", bench.key), /--ca .*: holds no certificate/],
  ])("%s ends with 2 and one line, and sends nothing", async (_name, args, line) => {
    const before = bench.platform.received.length;
    expectOneLine(await run(args()), 2, line);
    expect(bench.platform.received).toHaveLength(before);
  });

  // Elsewhere these paths mean nothing.
  const testOnLinux = process.platform === "linux" ? test : test.skip;
  testOnLinux.each<[string, () => readonly string[], RegExp]>([
    [
      "keys in a new directory in /proc",
      () => ["keygen", "--out", "/proc/countersign/keys"],
      /cannot write the key files: ENOENT: /,
    ],
    ["a device as key", () => bench.payout("--key", "/dev/zero"), /--key \/dev\/zero: is no file$/m],
    ["a device as body", () => bench.payout("--file", "/dev/zero"), /--file \/dev\/zero: is no file$/m],
  ])("%s ends too, with 2 and one line", async (_name, args, line) => {
    // In a process that can be ended: reading there never ends.
    expectOneLine(await bench.spawned(args()), 2, line);
  });
});
