import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { parseWebhookEnvelope } from "countersign/webhooks";
import { sampleEventData } from "@countersign/devtools/internal";
import { CliBench, expectOneLine, expectRun, run } from "./cli-bench.ts";
import {
  bench,
  credentials,
  type Receiver,
  type Respond,
} from "../../devtools/test/sandbox/delivery-bench.ts";
import { selfSignedCertificate } from "@countersign/test-support/servers/certificates.ts";

const cli = new CliBench();
let receiver: Receiver;

const accept: Respond = (got) =>
  got.credentials === "service:test-password" && got.signedBy("test-secret") ? 200 : 404;

beforeAll(() => cli.open());
beforeEach(async () => {
  receiver = await bench.receiver(accept);
});
afterAll(() => cli.close());

const secrets = ["--username", credentials.username, "--password", credentials.password];
const signed = [...secrets, "--secret", credentials.secret];

function webhook(...args: readonly string[]): string[] {
  return ["webhook", "--url", receiver.url, ...signed, ...args];
}

describe("countersign webhook", () => {
  test("sends one signed webhook that the receiver reads", async () => {
    const { code, out, err } = await run(webhook());
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`POST /hooks/a%2Fb?x=1 to ${new URL(receiver.url).host} (plain)`);
    expect(out).toContain("200 OK, expected 2xx");
    expect(out).toContain("plain: as expected");
    expect(out).not.toMatch(/test-|Basic/);
    expect(receiver.received).toHaveLength(1);
    const envelope = parseWebhookEnvelope(receiver.received[0]?.body ?? Buffer.alloc(0));
    expect(envelope.invalid).toEqual([]);
    expect(envelope.events).toMatchObject([
      { type: "buyer.status_changed", data: { buyer_id: "buyer-1", new_status: "ACTIVE" } },
    ]);
    expect(Math.abs(Date.now() - envelope.timestamp.date.getTime())).toBeLessThan(60_000);
  });

  test("--duplicate sends the same bytes twice, and the second only behind a first as expected", async () => {
    const { code, out } = await run(webhook("--duplicate"));
    expect(code).toBe(0);
    expect(out).toMatch(/plain: as expected[^]*duplicate: as expected/);
    const [first, second] = receiver.received;
    expect(second?.body).toEqual(first?.body);
    expect(receiver.received).toHaveLength(2);
    expect(await run(webhook("--duplicate", "--expect", "500"))).toMatchObject({ code: 1 });
    expect(receiver.received).toHaveLength(3);
    expectOneLine(await run(webhook("--duplicate", "--tamper", "body")), 2, /--duplicate/);
  });

  test("shows every field that it sends", async () => {
    const { out } = await run(webhook("--event-id", "event-7", "--webhook-id", "w-1", "--timestamp", "now"));
    const rows = out.split("\n").slice(1, 10);
    expect(rows.map((row) => row.trim().split(/ {2,}/))).toEqual([
      ["webhook_id", "w-1"],
      ["timestamp", "now"],
      ["events.0.event_id", "event-7"],
      ["events.0.timestamp", "now"],
      ["events.0.type", "buyer.status_changed"],
      ["events.0.data.buyer_id", "buyer-1"],
      ["events.0.data.old_status", "PENDING"],
      ["events.0.data.new_status", "ACTIVE"],
      ["body", `${receiver.received[0]?.body.length} bytes`],
    ]);
  });

  test.each([...sampleEventData])(
    "sends of %s the data that --help says, as trigger's does",
    async (type, data) => {
      await run(webhook("--type", type));
      const { events } = JSON.parse(receiver.received[0]?.body.toString() ?? "") as { events: object[] };
      expect(events).toMatchObject([{ type, data }]);
      for (const command of ["webhook", "trigger"]) {
        const { out } = await run(`${command} --help`);
        expect(out.replaceAll(/\s+/g, "")).toContain(`${type}${JSON.stringify(data)}`);
        expect(out.split("\n").filter((line) => line.length > 80)).toEqual([]);
      }
    },
  );

  test("--forwarded-for sends what a proxy says of a request over https", async () => {
    await run(webhook("--forwarded-for", "192.0.2.10"));
    expect(receiver.received[0]?.headers).toMatchObject({
      "x-forwarded-for": "192.0.2.10",
      "x-forwarded-proto": "https",
    });
  });

  test("sends further header fields, such as those of a proxy", async () => {
    const headers = ["--header", "X-Forwarded-Proto: https", "--header", "X-Request-Id:7"];
    expect(await run(webhook(...headers))).toMatchObject({ code: 0 });
    expect(receiver.received[0]?.headers).toMatchObject({
      "x-forwarded-proto": "https",
      "x-request-id": "7",
    });
    expect(await run(webhook("--header", "nonsense"))).toMatchObject({ code: 2 });
  });

  test.each([
    "seller.status_changed",
    "payment_request.repayment.repaid",
    "payment_request.repayment.reminder",
  ])("has a sample of %s", async (type) => {
    expect(await run(webhook("--type", type))).toMatchObject({ code: 0 });
    const envelope = parseWebhookEnvelope(receiver.received[0]?.body ?? Buffer.alloc(0));
    expect(envelope.invalid).toEqual([]);
    expect(envelope.events[0]?.type).toBe(type);
  });

  test("puts flags into the envelope, unchecked", async () => {
    const ids = ["--event-id", "ev_1", "--webhook-id", "wh_1", "--timestamp", "2024-01-02T03:04:05.1Z"];
    await run(webhook("--type", "new.type", "--data", '{"a":[1, 1.10]}', ...ids));
    await run(webhook("--type", "new.type", "--event-id", ""));
    expect(receiver.received[0]?.body.toString()).toBe(
      '{"webhook_id":"wh_1","timestamp":"2024-01-02T03:04:05.1Z","events":[{"event_id":"ev_1",' +
        '"timestamp":"2024-01-02T03:04:05.1Z","type":"new.type","data":{"a":[1, 1.10]}}]}',
    );
    expect(JSON.parse(String(receiver.received[1]?.body))).toMatchObject({
      events: [{ event_id: "", data: {} }],
    });
  });

  test("sends a file byte for byte, whatever it holds", async () => {
    const text = '{"webhook_id": "w",\r\n "events": [ 1.10';
    expect(await run(webhook("--file", cli.file("envelope.json", text)))).toMatchObject({ code: 0 });
    expect(receiver.received[0]?.body.toString()).toBe(text);
  });

  test.each<[string, (got: Receiver["received"][0]) => boolean, (got: Receiver["received"][0]) => boolean]>([
    ["body", (got) => got.credentials === "service:test-password", (got) => got.signedBy("test-secret")],
    ["signature", (got) => got.credentials === "service:test-password", (got) => got.signedBy("test-secret")],
    ["password", (got) => got.signedBy("test-secret"), (got) => got.credentials === "service:test-password"],
  ])("--tamper %s spoils that part alone and expects a refusal", async (part, holds, spoilt) => {
    const { code, out } = await run(webhook("--tamper", part));
    expect(code).toBe(0);
    expect(out).toContain("404 Not Found, expected 401 or 404");
    expect(out).toContain(`tamper-${part}: as expected`);
    const [got] = receiver.received;
    expect([got !== undefined && holds(got), got !== undefined && spoilt(got)]).toEqual([true, false]);
  });

  test("a tampered body stays JSON with other bytes", async () => {
    const text = '{"n":"12"}';
    await run(webhook("--tamper", "body", "--file", cli.file("n.json", text)));
    expect(receiver.received[0]?.body.toString()).toBe('{"n":"13"}');
  });

  test("--json prints one document without credential and signature", async () => {
    const { code, out } = await run(webhook("--json", "--event-id", "ev_9"));
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      variant: "plain",
      asExpected: true,
      reached: true,
      request: { method: "POST", url: receiver.url, body: expect.stringContaining("ev_9") },
      answer: { status: 200, meaning: expect.stringMatching(/^delivered/) },
      error: null,
      expected: ["2xx"],
    });
    expect(out).not.toMatch(/test-|Basic|signature/i);
  });

  test("takes the credentials from the environment", async () => {
    const environment = {
      WEBHOOK_USERNAME: "service",
      WEBHOOK_PASSWORD: "test-password",
      WEBHOOK_SECRET: "test-secret",
    };
    const args = ["webhook", "--url", receiver.url];
    expect(await cli.spawned(args, environment)).toMatchObject({ code: 0, err: "" });
    expect(await cli.spawned(args, { ...environment, WEBHOOK_SECRET: "" })).toMatchObject({
      code: 2,
      err: "error: secret is empty\n",
    });
  });

  test("trusts the issuer in --ca and no other", async () => {
    const tls = selfSignedCertificate();
    const secure = await bench.receiver(accept, tls);
    const args = ["webhook", "--url", secure.url, ...signed];
    const refused = await run(args);
    expectRun(refused, 3, { out: /is not trusted.*plain: no answer/s });
    expect(await cli.spawned(args, { NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toMatchObject({ code: 3 });
    expect(secure.received).toEqual([]);
    expect(await run([...args, "--ca", cli.file("ca.pem", tls.cert)])).toMatchObject({ code: 0 });
  });

  test("a 404 that was not expected says where its reason is", async () => {
    const { out } = await run(webhook("--password", "wrong"));
    expect(out).toMatch(
      /not as expected\n\nA 404 does not say why: .*log has the code.*\n  countersign code/s,
    );
    expect(out).toMatch(/If it is https-required, [^]* {2}--forwarded-for 192\.0\.2\.10\n/);
    const asProxy = await run(webhook("--password", "wrong", "--forwarded-for", "192.0.2.10"));
    expect(asProxy.out).not.toContain("https-required");
    for (const flags of [["--expect", "404"], ["--json"]])
      expect((await run(webhook("--password", "wrong", ...flags))).out).not.toContain("does not say");
  });

  test.each<[string, readonly string[], number]>([
    ["a wrong password", ["--password", "wrong"], 1],
    ["a refusal that is expected", ["--password", "wrong", "--expect", "401,404"], 0],
    ["a delivery that is not expected", ["--expect", "404"], 1],
    ["a tampered part that is accepted", ["--tamper", "body", "--expect", "2xx"], 1],
    ["a closed port", ["--url", "http://127.0.0.1:1/"], 3],
    ["a closed port and --json", ["--url", "http://127.0.0.1:1/", "--json"], 3],
  ])("%s ends with exit code", async (_name, args, expected) => {
    const { code, out, err } = await run(webhook(...args));
    expect({ code, err }).toEqual({ code: expected, err: "" });
    expect(out).not.toContain("test-");
  });

  test.each<[string, () => string[], RegExp]>([
    ["no credentials", () => ["webhook", "--url", "https://h/"], /required option '--username <name>'/],
    ["no --url", () => ["webhook", ...signed], /required option '--url <url>'/],
    [
      "plain http to another host",
      () => ["webhook", "--url", "http://platform.example/hooks", ...signed],
      /--url: plain http shows everything .*add --allow-http/,
    ],
    ["no URL", () => webhook("--url", "h"), /the URL must be/],
    ["an empty password", () => webhook("--password", ""), /password is empty/],
    ["a colon in the username", () => webhook("--username", "a:b"), /colon/],
    ["data that is no JSON", () => webhook("--data", "{"), /--data: is not JSON/],
    [
      "a missing file",
      () => webhook("--file", "/nowhere/x"),
      /--file \/nowhere\/x: cannot be read \(ENOENT\)/,
    ],
    ["a file and a type", () => webhook("--file", "x", "--type", "t"), /cannot be used with option/],
    ["an unknown part", () => webhook("--tamper", "digest"), /Allowed choices are body, signature, password/],
    [
      "a file that no JSON parser has read",
      () => webhook("--file", cli.file("x", "x"), "--tamper", "body-re-serialised"),
      /not JSON/,
    ],
    ["a proxy without an address", () => webhook("--forwarded-for", "me"), /--forwarded-for: expected an IP/],
    ["a bad --timeout", () => webhook("--timeout", "0"), /--timeout: expected an integer/],
    ["a bad --expect", () => webhook("--expect", "ok"), /--expect: expected statuses/],
    ["a --ca without certificate", () => webhook("--ca", cli.file("no.pem", "x")), /holds no certificate/],
  ])("%s is bad usage in one line, and nothing is sent", async (_name, args, message) => {
    const ended = await run(args());
    expectOneLine(ended, 2, message);
    expect(ended.err).not.toContain("test-");
    expect(receiver.received).toEqual([]);
  });
});
