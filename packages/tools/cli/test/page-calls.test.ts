import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { payoutPlans } from "@countersign/devtools/internal";
import type { Command } from "commander";
import { createProgram } from "../src/program.ts";
import { PageBench, seeded } from "../../devtools/test/sandbox/page-bench.ts";
import { CliBench, run } from "./cli-bench.ts";

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly shown?: Call;
}
interface Calls {
  readonly calls: Record<string, (...args: readonly unknown[]) => Call>;
  readonly commandWords: (call: Call, url: string) => string[];
  readonly commandLine: (call: Call, url: string) => string;
  readonly curlLine: (call: Call, url: string, access?: readonly string[]) => string;
}

let bench: PageBench;
const cli = new CliBench();
let page: Calls;
beforeAll(async () => {
  // A module of the browser, without types.
  page = (await import(new URL("../../devtools/page/sandbox/calls.js", import.meta.url).href)) as Calls;
  await cli.open();
});
afterAll(() => cli.close());
beforeEach(async () => {
  bench = new PageBench();
  await bench.open();
  bench.register();
  bench.sandbox.createPaymentRequest({ payment_request_id: "p-2", due_date: "2030-01-31" });
});
afterEach(() => bench.close());

describe("a call of the page and its command", () => {
  test.each(["test.unknown", "--help"])("both send any event: %s", async (type) => {
    const call = page.calls["event"]!(type, { text: "it's" });
    const { status } = await bench.ask(call.method, call.path, { body: call.body ?? {} });
    await bench.sandbox.deliveries.idle();
    const words = page.commandWords(call, bench.sandbox.url);
    // In the environment of a shell; here as a flag, before what no flag can follow.
    const end = words.indexOf("--");
    const at = end === -1 ? words.length : end;
    const key = ["--api-key", seeded.apiKey];
    const { code, err } = await run([...words.slice(0, at), ...key, ...words.slice(at)]);
    expect({ status: status < 300, code, err }).toEqual({ status: true, code: 0, err: "" });
    await bench.sandbox.deliveries.idle();
    const sent = bench.sandbox.deliveries.list().filter(({ eventTypes }) => eventTypes.includes(type));
    expect(sent).toHaveLength(2);
  });

  test("the other calls have no command", () => {
    const others = [
      page.calls["deliveries"]!({ state: "delivered" }),
      page.calls["resend"]!(1),
      page.calls["control"]!(1, "pause"),
      page.calls["status"]!("buyer", "buyer-1", "ACTIVE"),
    ];
    expect(others.map((call) => "words" in call)).toEqual([false, false, false, false]);
  });

  test.each(payoutPlans.variants.map((info) => [info.variant, info] as const))(
    "payout, %s: the command sends the same variant",
    async (variant, info) => {
      const { value } = info;
      const about = { keyFile: cli.key, keyid: "test", forwardedFor: "192.0.2.10" };
      const fields = { iban: "-DE1", amount: '{"value":1.00}', reference: "it's; $HOME" };
      const call = page.calls["payout"]!({ url: `${bench.platform}/pay`, info, count: 2, fields, about });
      const words = page.commandWords(call, bench.sandbox.url);
      const { out, err } = await run([...words, "--json"]);
      expect(err).toBe("");
      const document = JSON.parse(out) as {
        variant: string;
        outcomes: { request: { body: string; headers: object } }[];
      };
      expect(document.variant).toBe(variant);
      expect(document.outcomes.at(-1)?.request.headers).toMatchObject({ "X-Forwarded-For": "192.0.2.10" });
      // --tamper changes the last digit; what serialises JSON again loses digits.
      const amount = value === "body-re-serialised" ? "1" : String.raw`1\.0[01]`;
      expect(document.outcomes.at(-1)?.request.body).toMatch(
        new RegExp(`"iban":"-DE1".*"amount":\\{"value":${amount}\\},"reference":"it's; \\$HOME"`),
      );
    },
  );

  test("quote for a shell, and name the API key by its variable", () => {
    const call = page.calls["event"]!("a b", { text: "it's $HOME" });
    const url = "http://127.0.0.1:4000";
    expect(page.commandLine(call, url)).toBe(
      String.raw`countersign trigger 'a b' --data '{"text":"it'\''s $HOME"}' --url http://127.0.0.1:4000`,
    );
    expect(page.curlLine(call, url)).toBe(
      String.raw`curl http://127.0.0.1:4000/sandbox/events -H "X-API-KEY: $COUNTERSIGN_API_KEY" -H 'Content-Type: application/json' -d '{"type":"a b","data":{"text":"it'\''s $HOME"}}'`,
    );
  });
});

describe("the line that registers an endpoint", () => {
  const access = (token: string, url: string): readonly string[] => [
    `X-Page-Token: ${token}`,
    `Origin: ${url}`,
  ];

  test("is complete with the key of the page, and is shown without what is secret", async () => {
    const { url } = bench.sandbox;
    const { username, password, secret } = seeded;
    const call = page.calls["endpoint"]!({ url: `${bench.platform}/new`, username, password, secret });
    const line = page.curlLine(call, url, access(bench.token, url));
    // What a shell makes of the words in single quotes.
    const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
    const headers = words.filter((_word, index) => words[index - 1] === "-H").map((word) => word.split(": "));
    const answer = await fetch(words[1] ?? "", {
      method: "POST",
      headers: Object.fromEntries(headers),
      body: words.at(-1) ?? "",
    });
    expect(answer.status).toBe(201);
    expect(bench.sandbox.deliveries.endpoints().at(-1)?.url).toBe(`${bench.platform}/new`);
    const shown = page.curlLine(call.shown ?? call, url, access("[masked]", url));
    for (const hidden of [password, secret, bench.token, JSON.stringify(password).slice(1, -1)])
      expect([line.includes(hidden) || hidden === password, shown.includes(hidden)]).toEqual([true, false]);
  });
});

describe("the list of variants", () => {
  test("is that of countersign payout", () => {
    const program = createProgram(
      { writeOut() {}, writeError() {}, colours: false, clock: () => 0 },
      () => {},
    );
    const payout = program.commands.find((command: Command) => command.name() === "payout");
    const variants = new Set(payoutPlans.variants.flatMap(({ flag }) => flag ?? []));
    const options = payout?.options.filter((option) => variants.has(option.attributeName())) ?? [];
    const listed = options.flatMap((option) =>
      (option.argChoices ?? [undefined]).map((value) => ({ flag: option.attributeName(), value })),
    );
    expect(
      payoutPlans.variants
        .filter(({ flag }) => flag !== undefined)
        .map(({ flag, value }) => ({ flag, value })),
    ).toEqual(listed);
    // Those that exclude each other are the variants, and there is no other.
    const excluding = payout?.options.filter((option) => JSON.stringify(option).includes('"expired"'));
    expect(excluding?.every((option) => variants.has(option.attributeName()))).toBe(true);
  });
});
