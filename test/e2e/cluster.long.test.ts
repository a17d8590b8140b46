import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import {
  buildPayoutRequest,
  createPayoutInstruction,
  PayoutSendError,
  sendPayout,
} from "@countersign/sandbox";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { endpointOf } from "../../examples/cluster/dist/cases.js";
import { openEngines } from "../../examples/cluster/dist/engines.js";
import { startCluster, type Cluster } from "../../examples/cluster/dist/topology.js";
import { startDemoService, type DemoService } from "../../examples/demo/dist/service.js";
import { capture, killAll } from "../../examples/platform/test/platform-process.ts";
import { describeOnPostgres, describeOnRedis, postgresUrl } from "../support/servers/engines.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = path.join(root, "scripts/cluster.mjs");
const payoutPath = "/api/v1/transaction";

// On a machine that has no time for it, every answer is late; what is asserted is none the less true.
jest.setTimeout(240_000);

afterEach(killAll);

const stores = [
  { store: "postgres", describe: describeOnPostgres },
  { store: "redis", describe: postgresUrl === undefined ? describe.skip : describeOnRedis },
] as const;

for (const { store, describe: describeOnStore } of stores) {
  describeOnStore(`npm run cluster, with ${store}`, () => {
    test("shows every case as expected over both processes and ends with 0", async () => {
      const cluster = capture(process.execPath, [script, "--once", "--store", store], { cwd: root });
      const code = await cluster.ended;
      expect({ code, err: cluster.stderr(), out: cluster.stdout() }).toMatchObject({
        code: 0,
        err: expect.not.stringMatching(/error/i),
      });
      const lines = cluster.stdout().trimEnd().split("\n");
      const rows = lines.slice(0, -2);
      expect(rows.length).toBeGreaterThanOrEqual(12);
      for (const row of rows) expect(row).toMatch(/^ok  .{34}  \S/);
      expect(lines.at(-1)).toBe(`${rows.length} of ${rows.length} as expected`);
    });

    describe("of which one process is killed under load", () => {
      const ends: (() => Promise<void> | void)[] = [];
      let cluster: Cluster;
      let service: DemoService;

      beforeEach(async () => {
        const folder = mkdtempSync(path.join(tmpdir(), "cluster-e2e-"));
        ends.push(() => rmSync(folder, { recursive: true, force: true }));
        const none = async (): Promise<undefined> => undefined;
        const engines = await openEngines(store, process.env, { postgres: none, redis: none });
        ends.push(() => engines.close());
        cluster = await startCluster({ folder, port: 0, store: engines.env });
        ends.push(() => cluster.stop());
        service = await startDemoService();
        ends.push(() => service.close());
      });

      // The last first, and what was started alone: an error of the set-up is not hidden behind others.
      afterEach(async () => {
        for (let end = ends.pop(); end !== undefined; end = ends.pop()) await end();
      });

      test("pays every payout once and applies every event once with the other", async () => {
        await service.register(endpointOf(cluster));
        const keys = Array.from({ length: 120 }, (_, index) => `op-${index}.from.to`);
        const buyers = Array.from({ length: 60 }, (_, index) => `buyer-${index}`);
        const doomed = cluster.platforms[0]!;
        let answered = 0;
        let killed: Promise<void> | undefined;
        const pay = async (key: string): Promise<readonly string[]> => {
          const seen = await payUntilDecided(cluster, key);
          answered += 1;
          if (answered === 30) killed = doomed.kill();
          return seen;
        };
        const waiting = [...keys];
        const histories: (readonly string[])[] = [];
        const callers = Array.from({ length: 10 }, async () => {
          for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
            histories.push(await pay(key));
          }
        });
        for (const buyer of buyers) {
          service.sandbox.changeBuyerStatus(buyer, "ACTIVE");
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        await Promise.all(callers);
        expect(killed).toBeDefined();
        await killed;
        await service.sandbox.deliveries.idle();

        expect(histories).toHaveLength(keys.length);
        // 409 says that it was paid: only to somebody whose earlier call may have been handled, by a process that was killed
        // then, or that did not hear in time from its database what became of it.
        for (const seen of histories) {
          expect(seen.at(-1)).toMatch(/^(?:200|409)$/);
          if (seen.at(-1) === "409") expect(seen.join(" ")).toMatch(/502|503|timed-out|connection-lost/);
        }
        const payouts = await inspect<{ idempotency_key: string }>("payouts");
        expect(payouts).toHaveLength(keys.length);
        expect(new Set(payouts.map(({ idempotency_key }) => idempotency_key))).toEqual(new Set(keys));
        const events = await inspect<{ applied: number }>("events");
        expect(events).toHaveLength(buyers.length);
        expect(events.filter(({ applied }) => applied !== 1)).toEqual([]);
        expect(Math.min(...cluster.proxy.answered)).toBeGreaterThan(0);
        expect(() => process.kill(doomed.pid!, 0)).toThrow("ESRCH");
      });

      async function inspect<Row>(what: string): Promise<readonly Row[]> {
        return (await (await fetch(`${cluster.url}/inspect/${what}`)).json()) as readonly Row[];
      }
    });
  });
}

test("npm run cluster refuses an argument that it does not know", async () => {
  const cluster = capture(process.execPath, [script, "--store", "mysql"], { cwd: root });
  expect(await cluster.ended).toBe(1);
  expect(cluster.stderr()).toContain("npm run cluster: expected no argument, --once, --store redis");
});

/** As the service does: until the answer is a 200 or a 409. Gives every answer, and why there was none. */
async function payUntilDecided({ url, setup }: Cluster, idempotencyKey: string): Promise<readonly string[]> {
  const { keyid, privateKeyPem: privateKey } = setup.key;
  const body = createPayoutInstruction({ idempotencyKey });
  const seen: string[] = [];
  for (const end = Date.now() + 150_000; Date.now() < end;) {
    const request = buildPayoutRequest({ url: url + payoutPath, body, privateKey, keyid });
    const answer = await sendPayout(request, { timeoutMs }).then(({ status }) => String(status), reasonOf);
    seen.push(answer);
    if (answer === "200" || answer === "409") break;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return seen;
}

// Longer than the proxy waits: its 502 comes first.
const timeoutMs = 30_000;

function reasonOf(error: unknown): string {
  if (error instanceof PayoutSendError) return error.code;
  throw error;
}
