// Two platforms behind nginx that are restarted, one after the other, while payouts come in on kept connections. The platforms are
// the programs that README and pages show.
import { setTimeout as sleep } from "node:timers/promises";
import { createPayoutInstruction } from "@countersign/devtools/sandbox";
import { afterEach, describe, expect, test } from "@jest/globals";
import { nginxBinary, startClusterNginx } from "../support/servers/cluster-nginx.ts";
import { byProxy, payerOf, startExample, type RunningExample } from "../support/servers/example.ts";
import { eventually } from "../support/runs/eventually.ts";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import { freePort, privateFolder } from "../support/servers/private-process.mjs";
import { reportMissing } from "../support/servers/server-binaries.mjs";
import { newKey } from "./engines.ts";

if (nginxBinary === undefined) reportMissing("nginx", "no platform is restarted behind one.");
const describeOnNginx = nginxBinary === undefined ? describe.skip : describe;

const programs: readonly (readonly [string, string])[] = [
  ["Express 5", "existing-express-app/dist/server.js"],
  ["Express 4", "express4-commonjs/src/server.js"],
  ["Fastify", "fastify/dist/server.js"],
  ["Hono", "hono/dist/server.js"],
];
/** At a time, so that nginx keeps at most so many connections to a platform busy. */
const payers = 16;
/** Where a process does not end before its traffic, the traffic ends. */
const mostPayouts = 3_000;

const started: { close(): unknown }[] = [];

afterEach(async () => {
  // oxlint-disable-next-line no-await-in-loop -- the folder goes last
  for (const one of started.splice(0)) await one.close();
});

describeOnNginx("two platforms behind nginx, restarted in turn under load", () => {
  test.each(programs)(
    "on %s: a refusal for each kept connection at most, and each payout once",
    async (_adapter, program) => {
      const folder = privateFolder("restarts");
      started.unshift({ close: () => folder.remove() });
      const ports = [await freePort(), await freePort()] as const;
      const start = async (port: number): Promise<RunningExample> => {
        const url = new URL(`../../examples/${program}`, import.meta.url);
        const platform = await startExample(url, [], { port, folder: folder.path });
        started.unshift({ close: () => platform.stop() });
        return platform;
      };
      // One after the other: both make the tables.
      const platforms = [await start(ports[0]), await start(ports[1])];
      const nginx = await startClusterNginx(ports, (conf) =>
        conf
          .replace(
            "access_log /dev/stdout",
            'log_format upstream "$upstream_addr $status";\naccess_log /dev/stdout upstream',
          )
          .replace("X-Forwarded-For $remote_addr", `X-Forwarded-For ${byProxy["X-Forwarded-For"]}`),
      );
      started.unshift(nginx);
      const acceptedBy = (port: number): number =>
        nginx.log().filter((line) => line === `127.0.0.1:${port} 200`).length;

      // express-session says so in production, where the existing app of the example shall replace its store.
      allowWarnings(/MemoryStore is not|designed for a production environment|memory, and will not scale/);
      const load = startLoad(`http://127.0.0.1:${nginx.port}`);
      await eventually(() => ports.every((port) => acceptedBy(port) > 10));
      for (const [index, port] of ports.entries()) {
        expect(await platforms[index]!.stop()).toBe(0);
        // It ended with its last answer, and not with the last request.
        expect(load.isOver()).toBe(false);
        const before = acceptedBy(port);
        platforms[index] = await start(port);
        await eventually(() => acceptedBy(port) > before + 10);
      }
      const { keys, refused } = await load.end();
      // Whoever arrives is handled; a proxy may have sent to a connection or a process at the moment of its end.
      expect(refused.filter((status) => status !== 502)).toEqual([]);
      expect(refused.length).toBeLessThanOrEqual(ports.length * payers);
      const { payouts } = platforms[0]!.records();
      expect(payouts).toHaveLength(keys.length);
      expect(new Set(payouts)).toEqual(new Set(keys));
    },
  );
});

/** Payouts one after the other, by several at a time, each repeated until its answer is final. */
function startLoad(url: string) {
  const send = payerOf(url, {});
  const keys: string[] = [];
  const refused: number[] = [];
  let isOver = false;
  const payer = async (): Promise<void> => {
    while (!isOver) {
      const key = newKey();
      keys.push(key);
      isOver ||= keys.length >= mostPayouts;
      const body = createPayoutInstruction({ idempotencyKey: key });
      let status = await send(body);
      if (status !== 200) refused.push(status);
      for (
        const until = performance.now() + 20_000;
        status !== 200 && status !== 409;
        status = await send(body)
      ) {
        if (performance.now() > until) throw new Error(`no final answer: ${status}`);
        await sleep(20);
      }
    }
  };
  const ended = Promise.all(Array.from({ length: payers }, payer));
  // Told where it is awaited.
  ended.catch(() => undefined);
  return {
    isOver: () => isOver,
    async end() {
      isOver = true;
      await ended;
      return { keys, refused };
    },
  };
}
