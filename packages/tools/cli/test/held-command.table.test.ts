import { beforeEach, describe, expect, test } from "@jest/globals";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import { failureCounts } from "@countersign/idempotency/internal";
import { moduleIn, run, shellWords, spawnCli, temporaryFolder } from "./cli-bench.ts";
import { engineRows, hold, methodsOf, onEngines, runJson, runOn } from "./operator-bench.ts";

const folder = temporaryFolder();

const describing = `
export async function describe(key, record) {
  if ("token" in record) throw new Error("the token is nobody's business");
  return { business: "business-9", beneficiary: "Example\\u001b[2J GmbH", amount: "1,250.00 EUR", fence: record.fence };
}`;

onEngines(engineRows, "countersign keys held", (bench) => {
  test("says since when, by the fence, for how long, and why", async () => {
    const key = "payout:op.from.to";
    const { idempotency } = bench.behind(47 * 60_000 + 30_000);
    await idempotency.claim(key, { token: "t", fingerprint: "f", leaseMs: 1000, recovery: "hold" });
    const { out } = await runOn(bench, "keys held");
    expect(out).toMatch(/^payout:op\.from\.to\n {2}begun +\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ, 47 min ago$/m);
    expect(out).toMatch(/^ {2}why +lease expired 47 min ago: the process that ran it died or hangs;/m);
    const [document] = await runJson(bench, "keys held");
    const { begunAt } = document as { begunAt: string };
    expect(Date.now() - Date.parse(begunAt)).toBeGreaterThan(47 * 60_000);
    expect(Date.now() - Date.parse(begunAt)).toBeLessThan(48 * 60_000);
  });

  test("warns of the process that may go on, also once a retry has made its run a held key", async () => {
    const key = "payout:op.from.to";
    const claim = { token: "t", fingerprint: "f", leaseMs: 1000, recovery: "hold" } as const;
    await bench.behind(60_000).idempotency.claim(key, claim);
    const warnings = async () => {
      const { out } = await runOn(bench, "keys held");
      const decision = ["keys", "resolve", key, "--as", "released", "--note", "TICKET-1"];
      const asked = await runOn(bench, decision, { ask: () => Promise.resolve("no") });
      return [
        /^ {2}why .*make sure that it is gone$/m.test(out),
        asked.out.includes("make sure that it is gone"),
      ];
    };
    expect(await warnings()).toEqual([true, true]);
    expect(await bench.idempotency.claim(key, { ...claim, token: "retry" })).toMatchObject({
      status: "held",
    });
    expect(await warnings()).toEqual([true, true]);
    await hold(bench, "payout:op-2.from.to");
    const decision = "keys resolve payout:op-2.from.to --as released --note TICKET-1";
    const asked = await runOn(bench, decision, { ask: () => Promise.resolve("no") });
    expect(asked.out).not.toContain("make sure that it is gone");
  });

  test("says of an event when it is done, and of a payment whether money has moved", async () => {
    await hold(bench, "webhook-event:event-1");
    await hold(bench, "payout:op.from.to");
    const { out } = await runOn(bench, "keys held");
    const linesOf = (key: string): string => new RegExp(`^${key}\\n(?: .*\\n)+`, "m").exec(out)?.[0] ?? "";
    const [payment, event] = [linesOf("payout:op.from.to"), linesOf("webhook-event:event-1")];
    expect(payment).toContain("  no money has moved, and the next retry is to pay:\n");
    expect(event).toContain("  it was not processed, and the next delivery is to do it:\n");
    expect(event).not.toMatch(/pay|money/);
  });

  test("asks for no decision about a failure that was being counted when its process died", async () => {
    const { idempotency } = bench.behind(60_000);
    const init = { token: "t", fingerprint: "f", leaseMs: 1000, recovery: "rerun" } as const;
    await idempotency.claim("webhook-event:event-1", init);
    const failure = failureCounts.of("webhook-event:event-1", 1);
    await idempotency.claim(failure.key, { ...init, fingerprint: failure.fingerprint });
    const [document, ...others] = await runJson(bench, "keys held");
    expect(document).toMatchObject({ key: "webhook-event:event-1", state: "running" });
    expect(others).toEqual([]);
    const { out } = await runOn(bench, "keys list --state running");
    expect(out).toContain("counts a failed attempt of an event");
  });

  test("prints the commands that decide, and they do", async () => {
    const env = { STORE_URL: bench.url };
    const [, , ...place] = bench.flags;
    for (const [key, outcome] of [
      ["payout:op-1.from.to", "done"],
      ["payout:it's \u001B é", "released"],
    ] as const) {
      await hold(bench, key);
      const { out } = await spawnCli(["keys", "held", ...place], { env });
      const line = out.split("\n").find((candidate) => candidate.includes(`--as ${outcome}`)) ?? "";
      expect(line).toContain(" --note '...'");
      const words = shellWords(line.trim());
      expect(words.slice(0, 3)).toEqual(["countersign", "keys", "resolve"]);
      expect(await spawnCli([...words.slice(1), "--yes"], { env })).toMatchObject({
        code: 2,
        err: "error: --note: say why, in place of the dots\n",
      });
      const noted = words.map((word) => (word === "..." ? "TICKET-1" : word));
      expect(await spawnCli([...noted.slice(1), "--yes"], { env })).toMatchObject({ code: 0, err: "" });
      const record = await bench.idempotency.read(key);
      expect(record?.state).toBe(outcome === "done" ? "done" : undefined);
    }
  });
});

describe("a describe() of the platform", () => {
  const shared = globalThis as { heldStoreOfTest?: IdempotencyStore };
  const key = "payout:op.from.to";
  beforeEach(() => {
    const store = memoryIdempotencyStore();
    store.claim(key, { token: "t", fingerprint: "f", leaseMs: 60_000, recovery: "hold" });
    store.hold(key, "t", "why");
    shared.heldStoreOfTest = { ...methodsOf(store), close: () => {} };
  });

  const held = (describeText: string, ...args: readonly string[]) => {
    const text = `export const createStore = () => globalThis.heldStoreOfTest;\n${describeText}`;
    const file = moduleIn(folder, text, "module.mjs");
    return run(["keys", "held", "--store-module", file, ...args]);
  };

  test("is found in the module of the store, and steers no terminal", async () => {
    const { code, out } = await held(describing);
    expect(code).toBe(1);
    expect(out).toMatch(
      /^payout:op\.from\.to\n {2}amount +1,250\.00 EUR\n {2}beneficiary +Example\\u\{1b\}\[2J GmbH\n {2}business +business-9\n/,
    );
    const { out: json } = await held(describing, "--json");
    expect(JSON.parse(json)).toMatchObject({ key, description: { amount: "1,250.00 EUR" } });
  });

  test.each([
    [
      "throws",
      'export function describe() { throw new Error("no \\u001b[2J answer"); }',
      "no \\u{1b}[2J answer",
    ],
    ["rejects", "export const describe = () => Promise.reject(new Error('gone'));", "gone"],
    ["gives a text", "export const describe = () => 'ten euros';", "describe() must give an object"],
    [
      "gives an object in it",
      "export const describe = () => ({ amount: {} });",
      "describe(): amount must be a text",
    ],
    ["never answers", "export const describe = () => new Promise(() => {});", "no answer within 2000 ms"],
  ])("that %s hides no key", async (_name, text, why) => {
    const { code, out } = await held(text);
    expect(code).toBe(1);
    expect(out).toContain(`${key}\n  described     no: ${why}`);
    expect(out).toMatch(/^ {2}why +why$/m);
    const { out: json } = await held(text, "--json");
    expect(JSON.parse(json)).toMatchObject({ key, descriptionError: expect.any(String) });
  });

  test("that knows nothing says nothing", async () => {
    const { out } = await held("export const describe = () => undefined;", "--json");
    expect(JSON.parse(out)).toMatchObject({ key, description: null });
  });
});
