import { createHash, createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { signRequest, type SignedRequest } from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem, strangerKey } from "@countersign/test-support/signers/test-keys.ts";
import { expectOneLine, expectRun, run, spawnCli, temporaryFolder } from "./cli-bench.ts";

const folder = temporaryFolder();
const secretName = "COUNTERSIGN_TEST_WEBHOOK_SECRET";
const secret = "a webhook secret of nobody";

beforeAll(() => {
  file("service.pem", servicePublicPem);
  file("keys.json", JSON.stringify({ "test-key": servicePublicPem }));
});
afterEach(() => {
  delete process.env[secretName];
});

function file(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const key = ["--key", `test-key=${join(folder, "service.pem")}`];
const signed = (plan = {}): SignedRequest => signRequest({ created: 1_700_000_000, ...plan });
// A wrong clock of the signer is refused, and fits no other mistake.
const clockNote =
  /^note: the clock was taken to be at created, \d+ s behind this machine's clock, at which a platform can answer signature-expired; --now /;
const stranger = (): SignedRequest => signed({ key: strangerKey });

function linesOf({ headers }: SignedRequest): string[] {
  const lines = ["Host: platform.example"];
  for (let index = 0; index < headers.length; index += 2)
    lines.push(`${headers[index]}: ${headers[index + 1]}`);
  return lines;
}

function rawOf(
  request: SignedRequest,
  { end = "\r\n", more = [] as string[], body = request.body } = {},
): Buffer {
  const head = [`${request.method} ${request.path} HTTP/1.1`, ...linesOf(request), ...more, "", ""].join(end);
  return Buffer.concat([Buffer.from(head), body]);
}

function curlOf(request: SignedRequest): string {
  const sent = [
    `${request.method} ${request.path} HTTP/1.1`,
    ...linesOf(request),
    `Content-Length: ${request.body.length}`,
  ];
  const received = ["HTTP/1.1 401 Unauthorized", "Content-Length: 0"];
  return [
    "*   Trying 127.0.0.1:443...",
    ...sent.map((line) => `> ${line}`),
    "> ",
    ...received.map((line) => `< ${line}`),
    "",
  ].join("\n");
}

const rawFile = (): string => file("raw", rawOf(signed()));

describe("countersign explain", () => {
  test.each<[string, () => string[]]>([
    ["a raw request", () => [rawFile()]],
    ["a raw request with LF", () => [file("lf", rawOf(signed(), { end: "\n" }))]],
    [
      "one to which an editor has put a line feed",
      () => {
        const request = signed();
        const body = Buffer.concat([request.body, Buffer.from("\n")]);
        return [file("editor", rawOf(request, { body, more: [`Content-Length: ${request.body.length}`] }))];
      },
    ],
    ["the output of curl -v", () => [file("curl", curlOf(signed())), "--data", file("body", signed().body)]],
    [
      "the second request of curl -v",
      () => [file("curls", curlOf(stranger()) + curlOf(signed())), "--data", file("body", signed().body)],
    ],
    ["a set of keys", () => [rawFile(), "--keys", join(folder, "keys.json")]],
  ])("finds nothing wrong with %s", async (_name, args) => {
    const given = args();
    const { code, out, err } = await run(["explain", ...given, ...(given.includes("--keys") ? [] : key)]);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringMatching(clockNote) });
    expect(out).toMatch(/^signature: The signature verifies/);
  });

  test("says what the signer has to change, the code and the expected base", async () => {
    const request = signed();
    const raw = rawOf(request).toString("latin1").replace(/^POST/, "PUT");
    const { code, out } = await run(["explain", file("put", raw), ...key]);
    expect(code).toBe(1);
    expect(out).toMatch(
      /^signature: Sign "@method" as "PUT": the signature fits with "POST", another method\.\n/,
    );
    expect(out).toContain("  code    signature-mismatch\n");
    // Beside a mistake by its name, the list of all that can be wrong would lead away from it.
    expect(out).not.toContain("to do");
    expect(out).toContain(String.raw`    "@method": PUT\n`);
  });

  test("shows no base where the signature fits it, but the digest of the bytes at hand", async () => {
    const request = signed();
    const body = Buffer.from('{"changed":true}');
    const { code, out } = await run(["explain", file("changed", rawOf(request, { body })), ...key]);
    expect(code).toBe(1);
    expect(out).toContain("  code    content-digest-mismatch\n");
    expect(out).toContain(
      `  also    The 16 bytes at hand: sha-256=:${createHash("sha256").update(body).digest("base64")}:\n`,
    );
    expect(out).not.toContain("expected base");
  });

  test("gives the remedy of the code where no usual mistake fits", async () => {
    const { code, out } = await run(["explain", file("raw", rawOf(stranger())), ...key]);
    expect(code).toBe(1);
    expect(out).toMatch(/ {2}what {4}signature-unexplained\n {2}code {4}signature-mismatch\n {2}to do {3}\S/);
  });

  test("--json prints one document", async () => {
    const { code, out } = await run(["explain", file("raw", rawOf(stranger())), ...key, "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      explained: [
        { check: "signature", what: "signature-unexplained", code: "signature-mismatch", details: [] },
      ],
    });
  });

  test("compares the signer's own base", async () => {
    const request = signed();
    const base = file("base", request.signatureBase.replace("POST", "PAST"));
    const { out } = await run(["explain", file("raw", rawOf(stranger())), ...key, "--signer-base", base]);
    expect(out).toContain("first difference: line 1, character 13\n");
    expect(out).toContain(String.raw`    signer    "@method": PAST\n`);
  });

  test("--now sets the clock", async () => {
    const { out } = await run(["explain", rawFile(), ...key, "--now", "1700000100"]);
    expect(out).toContain("the signature expired 40 s ago");
  });

  test("--components, --origin and --path-prefix are those of the verifier", async () => {
    const raw = file("raw", rawOf(signed({ path: "/payments/api" })));
    const stripped = file(
      "stripped",
      rawOf(signed({ path: "/payments/api" }))
        .toString()
        .replace("/payments", ""),
    );
    expect((await run(["explain", stripped, ...key, "--path-prefix", "/payments"])).code).toBe(0);
    const { out } = await run([
      "explain",
      raw,
      ...key,
      "--components",
      "@method, @query",
      "--origin",
      "https://a.example",
    ]);
    expect(out).toMatch(/^signature: Cover "@query" in Signature-Input/);
  });

  test("explains the HMAC of a webhook, and shows nothing of the secret", async () => {
    process.env[secretName] = secret;
    const body = '{"events":[]}';
    const mac = createHmac("sha256", secret).update(body).digest();
    const hook = (value: string): string =>
      file("hook", `POST /hooks/a HTTP/1.1\r\nHost: a\r\nX-Payload-Signature: ${value}\r\n\r\n${body}`);
    const good = await run(["explain", hook(mac.toString("base64")), "--secret-env", secretName]);
    expect(good).toMatchObject({ code: 0, err: "" });
    const hex = await run(["explain", hook(mac.toString("hex")), "--secret-env", secretName, "--json"]);
    expect(JSON.parse(hex.out)).toMatchObject({ explained: [{ check: "hmac", what: "hmac-encoding" }] });
    for (const { out, err } of [good, hex]) {
      expect(out + err).not.toContain(secret);
      expect(out + err).not.toContain(mac.toString("base64"));
    }
  });

  test("a webhook that was captured earlier is judged at its own time", async () => {
    process.env[secretName] = secret;
    const mac = createHmac("sha256", secret).update("1700000000.{}").digest("hex");
    const raw = file("stripe", `POST / HTTP/1.1\r\nStripe-Signature: t=1700000000,v1=${mac}\r\n\r\n{}`);
    const args = ["explain", raw, "--secret-env", secretName, "--webhook", "stripe"];
    expect((await run(args)).code).toBe(0);
    expect((await run([...args, "--now", "1800000000"])).out).toContain("older than toleranceSeconds");
  });

  test("explains Content-Digest alone where there is neither key nor secret", async () => {
    const digest = createHash("sha256").update("{}\n").digest("base64");
    const raw = file(
      "digest",
      `POST / HTTP/1.1\r\nContent-Digest: sha-256=:${digest}:\r\nContent-Length: 2\r\n\r\n{}`,
    );
    const { code, out } = await run(["explain", raw]);
    expect(code).toBe(1);
    expect(out).toMatch(/^digest: Compute Content-Digest over the bytes that are sent: .*line feed after it/);
  });

  test("says what is doubtful about a capture on stderr", async () => {
    const without = await run(["explain", file("curl", curlOf(signed())), ...key]);
    expect(without.err).toMatch(/^note: curl -v does not show the body; give its file by --data/);
    expect([without.code, without.out]).toEqual([1, expect.stringContaining("what    body-not-known")]);
    expect(without.out).not.toMatch(/empty|code {4}/);
    const request = signed({ body: "{}" });
    const args = ["explain", file("curl", curlOf(request)), ...key, "--data", file("b", "{\n}\n")];
    expect((await run(args)).err).toMatch(/^note: The body has 4 bytes, and Content-Length says 2\./);
    const chunked = file("chunked", rawOf(request, { more: ["Transfer-Encoding: chunked"] }));
    expect((await run(["explain", chunked, ...key])).err).toMatch(/^note: The body is encoded .* by --data/);
  });

  test("says which clock was taken, and that a signature was left out", async () => {
    const seconds = Math.floor(Date.now() / 1000);
    const fresh = file("fresh", rawOf(signed({ created: seconds })));
    expectRun(await run(["explain", fresh, ...key]), 0, {
      err: /at created, \d s behind this machine's clock; --now sets the time/,
    });
    const ahead = file("ahead", rawOf(signed({ created: seconds + 600 })));
    expect(await run(["explain", ahead, ...key])).toMatchObject({
      code: 1,
      out: expect.stringMatching(
        /^signature: Set the signer's clock: created .* ahead [^]*created-in-future\n/,
      ),
      err: "",
    });
    const given = await run(["explain", file("now", rawOf(signed())), ...key, "--now", "1700000001"]);
    expect(given).toMatchObject({ code: 0, err: "" });
    const digest = await run(["explain", file("digest", rawOf(signed()))]);
    expect(digest).toMatchObject({ code: 0, out: expect.stringContaining("digest: ") });
    expect(digest.err).toBe(
      "note: the signature was not looked at; give the public key by --key or --keys.\n",
    );
  });

  test("no text of a request steers the terminal", async () => {
    const raw = rawOf(signed({ keyid: "a" }))
      .toString("latin1")
      .replace('keyid="a"', 'keyid="\u001b[2J"');
    for (const flag of [[], ["--json"]]) {
      const { out, err } = await run(["explain", file("esc", raw), ...key, ...flag]);
      expect(out + err).toMatch(/^[\n\x20-\x7e]*$/);
    }
  });

  test.each<[string, () => string[], RegExp]>([
    ["no file of this name", () => ["none"], /none: cannot be read \(ENOENT\)/],
    ["no request", () => [file("no", "hello\n"), ...key], /no HTTP request: it begins with no line/],
    ["no colon", () => [file("no", "POST / HTTP/1.1\nhello\n\n"), ...key], /a header line has no colon/],
    ["no curl", () => [file("no", "> HTTP request\n"), ...key], /no output of curl -v/],
    [
      "an HMAC without the body",
      () => {
        process.env[secretName] = secret;
        return [file("curl", curlOf(signed())), "--secret-env", secretName];
      },
      /--secret-env: the capture does not have the body/,
    ],
    ["nothing to check by", () => [file("raw", "GET / HTTP/1.1\n\n")], /--key or --keys, or the secret/],
    ["a key without a name", () => [rawFile(), "--key", "service.pem"], /expected keyid=file/],
    ["a key that is none", () => [rawFile(), "--key", `a=${file("bad", "x")}`], /key/],
    ["a set without keys", () => [rawFile(), "--keys", file("empty.jwks", '{"keys":[]}')], /no key/],
    ["a variable that is not set", () => [rawFile(), "--secret-env", secretName], /is not set/],
    [
      "a variable with a line feed at its end",
      () => {
        process.env[secretName] = `${secret}\n`;
        return [rawFile(), "--secret-env", secretName];
      },
      /the variable COUNTERSIGN_TEST_WEBHOOK_SECRET ends with a line feed/,
    ],
    ["a bad clock", () => [rawFile(), ...key, "--now", "later"], /--now: expected an integer/],
    ["a bad origin", () => [rawFile(), ...key, "--origin", "here"], /--origin must be an origin/],
  ])("refuses %s with one line", async (_name, args, expected) => {
    expectOneLine(await run(["explain", ...args()]), 2, expected);
  });

  test("reads the request from standard input", async () => {
    expectRun(await spawnCli(["explain", ...key], { env: {}, input: rawOf(signed()) }), 0, {
      out: /^signature: The signature verifies/,
    });
  });
});
