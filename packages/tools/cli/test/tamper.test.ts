// Each value of --tamper: what is sent is refused, and the command and countersign explain name the mistake alike.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { payoutPlans, tamperedWebhookTexts } from "@countersign/devtools/internal";
import {
  bench as receivers,
  credentials,
  type Receiver,
} from "../../devtools/test/sandbox/delivery-bench.ts";
import { createProgram } from "../src/program.ts";
import { CliBench, run } from "./cli-bench.ts";

const cli = new CliBench();
let receiver: Receiver;
beforeAll(() => cli.open());
beforeEach(async () => {
  const { username, password, secret } = credentials;
  receiver = await receivers.receiver((got) =>
    got.credentials === `${username}:${password}` && got.signedBy(secret) ? 200 : 404,
  );
});
afterAll(() => cli.close());

interface Told {
  readonly asExpected: boolean;
  readonly explained: { readonly what: string; readonly sentence: string };
}

const inLine = (text: string): string => text.replaceAll(/\s+/g, " ");

function choicesOf(command: string): readonly string[] {
  const io = { writeOut() {}, writeError() {}, colours: false, clock: () => 0 };
  const found = createProgram(io, () => {}).commands.find((each) => each.name() === command);
  return found?.options.find((option) => option.long === "--tamper")?.argChoices ?? [];
}

// What is changed without a usual mistake behind it is called unexplained.
const payouts: readonly (readonly [part: string, what: string])[] = [
  ["body", "digest-unexplained"],
  ["digest", "signature-unexplained"],
  ["signature", "signature-unexplained"],
  ["path", "signature-unexplained"],
  ["prefix-removed", "path-with-prefix"],
  ["prefix-added", "path-without-prefix"],
  ["charset-added", "content-type-without-parameters"],
  ["body-re-serialised", "digest-of-body-re-serialised"],
  ["created-milliseconds", "created-milliseconds"],
];

describe("countersign payout --tamper", () => {
  test.each(payouts)("%s is refused and explained as %s", async (part, what) => {
    const file = cli.file(`${part}.http`, "");
    const { code, out } = await run(cli.payout("--tamper", part, "--save", file, "--json"));
    const { asExpected, explained } = JSON.parse(out) as Told;
    expect({ code, asExpected, what: explained.what }).toEqual({ code: 0, asExpected: true, what });
    const key = `test=${cli.key.replace("private", "public")}`;
    const again = await run(["explain", file, "--key", key, "--json"]);
    expect(JSON.parse(again.out)).toMatchObject({ explained: [explained] });
  });

  test.each(payouts)("%s is said in words, with the explanation of %s", async (part, what) => {
    const { sends } = payoutPlans.variants.find(({ value }) => value === part) ?? {};
    const { out } = await run(cli.payout("--tamper", part));
    expect(inLine(out)).toContain(`spoilt ${sends}`);
    expect(out).toContain(`\ncountersign explain calls it ${what}:\n  `);
    expect(out.split("\n").filter((line) => line.startsWith("  ") && line.length > 100)).toEqual([]);
  });

  test("prefix-added is named for a path of one segment too", async () => {
    const url = new URL("/pay", cli.platform.url).href;
    const { out } = await run(cli.payout("--url", url, "--tamper", "prefix-added", "--json"));
    expect((JSON.parse(out) as Told).explained.what).toBe("path-without-prefix");
  });

  test("has a row for each value, and --help says what it is", async () => {
    const { out } = await run("payout --help");
    const said = out.slice(out.indexOf("Parts of --tamper:"));
    expect(payouts.map(([part]) => part)).toEqual(choicesOf("payout"));
    for (const [part] of payouts) expect(said).toMatch(new RegExp(`^ {2}(?:.*, )?${part}\\b`, "m"));
  });

  test("explains nothing that is not spoilt on purpose", async () => {
    const { out } = await run(cli.payout("--json"));
    expect(JSON.parse(out)).toMatchObject({ explained: null });
  });
});

const webhooks: readonly (readonly [part: keyof typeof tamperedWebhookTexts, what: string])[] = [
  ["body", "hmac-wrong-secret"],
  ["signature", "hmac-wrong-secret"],
  ["password", "basic-password"],
  ["body-re-serialised", "hmac-of-body-re-serialised"],
];

describe("countersign webhook --tamper", () => {
  const webhook = (...args: readonly string[]): string[] => {
    const { username, password, secret } = credentials;
    const given = ["--username", username, "--password", password, "--secret", secret];
    return ["webhook", "--url", receiver.url, ...given, ...args];
  };

  test.each(webhooks)("%s is refused and explained as %s, without a secret", async (part, what) => {
    const { code, out } = await run(webhook("--tamper", part, "--json"));
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ asExpected: true, explained: { what } });
    const { out: text } = await run(webhook("--tamper", part));
    expect(text).toContain(`\ncountersign explain calls it ${what}:\n  `);
    expect(inLine(text)).toContain(`spoilt ${tamperedWebhookTexts[part]}`);
    for (const secret of [credentials.password, credentials.secret]) expect(out + text).not.toContain(secret);
  });

  test("has a row for each value, and --help says what it is", async () => {
    const { out } = await run("webhook --help");
    const said = out.slice(out.indexOf("With --tamper,"));
    expect(webhooks.map(([part]) => part)).toEqual(choicesOf("webhook"));
    for (const [part] of webhooks) expect(said).toContain(part);
  });

  test("is what countersign explain says of the request that arrived", async () => {
    await run(webhook("--tamper", "body-re-serialised"));
    const [got] = receiver.received;
    const fields = Object.entries(got?.headers ?? {}).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    const capture = `POST ${got?.target} HTTP/1.1\r\n${fields.join("")}\r\n${got?.body.toString()}`;
    const file = cli.file("hook.http", capture);
    const env = { WEBHOOK_SECRET: credentials.secret };
    const { out } = await cli.spawned(["explain", file, "--secret-env", "WEBHOOK_SECRET", "--json"], env);
    expect(JSON.parse(out)).toMatchObject({
      explained: [{ check: "hmac", what: "hmac-of-body-re-serialised" }],
    });
  });
});
