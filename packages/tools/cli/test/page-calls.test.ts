import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { payoutVariants, tamperedWebhookParts } from "@countersign/sandbox";
import type { Command } from "commander";
import { createProgram } from "../src/program.ts";
import { PageBench, seeded } from "../../sandbox/test/page-bench.ts";
import { CliBench, run } from "./cli-bench.ts";

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
}
interface Calls {
  readonly calls: Record<string, (...args: readonly unknown[]) => Call>;
  readonly commandWords: (call: Call, url: string) => string[];
  readonly commandLine: (call: Call, url: string) => string;
  readonly curlLine: (call: Call, url: string) => string;
}

let bench: PageBench;
const cli = new CliBench();
let page: Calls;
beforeAll(async () => {
  // A module of the browser, without types.
  page = (await import(new URL("../../sandbox/page/calls.js", import.meta.url).href)) as Calls;
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

/** A call as the page makes it, and then as its command. */
async function both(call: Call): Promise<{ status: number; code: number | null; err: string; out: string }> {
  const { method, path, body } = call;
  const { status } = await bench.ask(method, path, body === undefined ? {} : { body });
  await bench.sandbox.deliveries.idle();
  const words = page.commandWords(call, bench.sandbox.url);
  // In the environment of a shell; here as a flag, before what no flag can follow.
  const end = words.indexOf("--");
  const key = ["--api-key", seeded.apiKey];
  const at = end === -1 ? words.length : end;
  return { status, ...(await run([...words.slice(0, at), ...key, ...words.slice(at)])) };
}

describe("a call of the page and its command", () => {
  test.each<[string, () => Call]>([
    ["lists deliveries", () => page.calls["deliveries"]!({ state: "delivered" })],
    ["shows one", () => page.calls["delivery"]!({ id: 1, eventIds: ["e-1"] })],
    ["sends again", () => page.calls["resend"]!(1)],
    ["sends any event", () => page.calls["event"]!("test.unknown", { text: "it's" })],
    ...tamperedWebhookParts.map((part): [string, () => Call] => [
      `spoils the ${part}`,
      () => page.calls["spoil"]!(1, part),
    ]),
  ])("both do it: %s", async (_name, callOf) => {
    bench.sandbox.deliveries.notify([{ event_id: "e-1", type: "test.first", data: {} }]);
    await bench.sandbox.deliveries.idle();
    const { status, code, err } = await both(callOf());
    expect({ status: status < 300, code, err }).toEqual({ status: true, code: 0, err: "" });
  });

  // What was done once is refused the second time, in the same words.
  test.each<[string, () => Call, string]>([
    ["a buyer", () => page.calls["status"]!("buyer", "b 1/#?é", "ACTIVE"), "ACTIVE already"],
    [
      "a buyer whose id looks like a flag",
      () => page.calls["status"]!("buyer", "--help", "ACTIVE"),
      "ACTIVE already",
    ],
    ["a seller", () => page.calls["status"]!("seller", "s'1", "REJECTED"), "REJECTED already"],
    ["a payment request", () => page.calls["paymentRequest"]!("p-1", "2030-01-31"), "of this id already"],
    ["its repayment", () => page.calls["repayment"]!("p-2", "repay"), "CLOSED already"],
  ])("mean the same one: %s", async (_name, callOf, refused) => {
    const { status, code, err } = await both(callOf());
    expect({ status: status < 300, code }).toEqual({ status: true, code: 1 });
    expect(err).toContain(refused);
  });

  test("both remind", async () => {
    expect(await both(page.calls["repayment"]!("p-2", "remind"))).toMatchObject({ status: 200, code: 0 });
  });

  test("pause, continue and drop a delivery", async () => {
    await bench.sandbox.deliveries.idle();
    bench.status = 503;
    bench.sandbox.deliveries.notify([{ event_id: "e-2", type: "test.second", data: {} }]);
    const delivery = (): { id: number; stopped?: string; attempts: readonly unknown[] } | undefined =>
      bench.sandbox.deliveries.list({ eventId: "e-2" })[0] as never;
    while ((delivery()?.attempts.length ?? 0) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const id = delivery()?.id;
    const done: unknown[] = [];
    for (const action of ["pause", "continue", "pause", "drop"]) {
      const words = page.commandWords(page.calls["control"]!(id, action), bench.sandbox.url);
      const { code } = await run([...words, "--api-key", seeded.apiKey]);
      done.push([action, code, delivery()?.stopped]);
    }
    expect(done).toEqual([
      ["pause", 0, "paused"],
      ["continue", 0, undefined],
      ["pause", 0, "paused"],
      ["drop", 0, "dropped"],
    ]);
    expect(await both(page.calls["control"]!(id, "drop"))).toMatchObject({ status: 409, code: 1 });
  });

  test.each(payoutVariants.map((info) => [info.variant, info] as const))(
    "payout, %s: the command sends the same variant",
    async (variant, info) => {
      const about = { keyFile: cli.key, keyid: "test" };
      const fields = { iban: "-DE1", amount: '{"value":1.00}', reference: "it's; $HOME" };
      const call = page.calls["payout"]!({ url: `${bench.platform}/pay`, info, count: 2, fields, about });
      const words = page.commandWords(call, bench.sandbox.url);
      const { out, err } = await run([...words, "--json"]);
      expect(err).toBe("");
      const document = JSON.parse(out) as { variant: string; outcomes: { request: { body: string } }[] };
      expect(document.variant).toBe(variant);
      // What --tamper changes is the last digit.
      expect(document.outcomes.at(-1)?.request.body).toMatch(
        /"iban":"-DE1".*"amount":\{"value":1\.0[01]\},"reference":"it's; \$HOME"/,
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

describe("the list of variants", () => {
  test("is that of countersign payout", () => {
    const program = createProgram(
      { writeOut() {}, writeError() {}, colours: false, columns: undefined, clock: () => 0 },
      () => {},
    );
    const payout = program.commands.find((command: Command) => command.name() === "payout");
    const variants = new Set(payoutVariants.flatMap(({ flag }) => flag ?? []));
    const options = payout?.options.filter((option) => variants.has(option.attributeName())) ?? [];
    const listed = options.flatMap((option) =>
      (option.argChoices ?? [undefined]).map((value) => ({ flag: option.attributeName(), value })),
    );
    expect(
      payoutVariants.filter(({ flag }) => flag !== undefined).map(({ flag, value }) => ({ flag, value })),
    ).toEqual(listed);
    // Those that exclude each other are the variants, and there is no other.
    const excluding = payout?.options.filter((option) => JSON.stringify(option).includes('"expired"'));
    expect(excluding?.every((option) => variants.has(option.attributeName()))).toBe(true);
  });
});
