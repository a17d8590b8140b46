// The page "Deploy": its nginx.conf in a real nginx, its server as three processes on PostgreSQL, its unit examined by systemd.
import { execFile, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  buildPayoutRequest,
  buildWebhookRequest,
  createEnvelope,
  createPayoutInstruction,
  generateKeyPair,
} from "@countersign/devtools/sandbox";
import { migrate } from "@countersign/store-sql";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Client, Pool } from "pg";
import { eventually } from "../support/runs/eventually.ts";
import { testAuthority } from "../support/servers/certificates.ts";
import { nginxBinary, startNginx, type ClusterNginx } from "../support/servers/cluster-nginx.ts";
import { describeOnPostgres, isolatedName, postgresUrl } from "../support/servers/engines.ts";
import { freePort, privateFolder, spawnPrivate } from "../support/servers/private-process.mjs";
import { reportMissing } from "../support/servers/server-binaries.mjs";

const run = promisify(execFile);
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const shown = (name: string): string => readFileSync(path.join(root, "site/snippets/deploy", name), "utf8");
const program = path.join(root, "examples/snippets/dist/guide/deploy.js");

if (nginxBinary === undefined) reportMissing("nginx", "the page on deployment is not run.");
const describeOnNginx = nginxBinary === undefined ? describe.skip : describeOnPostgres;

const authority = testAuthority();
const key = generateKeyPair();
const listed = "127.0.0.2";
const listedIban = "DE89370400440532013000";

describeOnNginx("three processes of the page behind its nginx", () => {
  const folder = privateFolder("deploy");
  const database = isolatedName("deploy");
  const url = new URL(postgresUrl ?? "postgres://127.0.0.1");
  url.pathname = `/${database}`;
  const ports: number[] = [];
  const processes = new Map<number, ChildProcess>();
  let nginx: ClusterNginx;
  let pool: Pool;
  /** What the processes have written. */
  let log = "";

  async function asOwner(sql: string): Promise<void> {
    const client = new Client({ connectionString: postgresUrl });
    await client.connect();
    await client.query(sql);
    await client.end();
  }

  const settings = (): Record<string, string> => ({
    ...Object.fromEntries(
      [...shown("platform.env").matchAll(/^(\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
    ),
    DATABASE_URL: url.href,
    KEYS: path.join(folder.path, "keys"),
    ALLOW_IPS: listed,
    NODE_ENV: "production",
  });

  async function start(port: number): Promise<void> {
    const env = { ...process.env, ...settings(), PORT: String(port) };
    const child = spawnPrivate(process.execPath, [program], { env, stdio: ["ignore", "pipe", "pipe"] });
    processes.set(port, child);
    let said = "";
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on("data", (text: Buffer) => {
        said += text.toString();
        log += text.toString();
      });
    }
    await eventually(() => said.includes(`listening on port ${port}\n`));
  }

  /** SIGTERM; gives the exit code. */
  async function stop(port: number): Promise<unknown> {
    const child = processes.get(port)!;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    return (await ended)[0];
  }

  /** A process itself, as its machine reaches it. */
  const local = async (port: number, place: string): Promise<number> =>
    (await fetch(`http://127.0.0.1:${port}${place}`)).status;

  interface Sent {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: Uint8Array | string;
    readonly from?: string | undefined;
  }

  /** Through TLS and nginx. */
  function outside(
    place: string,
    { method = "GET", headers = {}, body, from = listed }: Sent = {},
  ): Promise<number> {
    return new Promise((resolve, reject) => {
      const options = { method, headers, ca: authority.cert, localAddress: from, agent: false };
      const sent = request(`https://127.0.0.1:${nginx.port}${place}`, options, (res) => {
        res.resume();
        res.once("end", () => resolve(res.statusCode ?? 0));
      });
      sent.once("error", reject);
      sent.end(body);
    });
  }

  const instruction = (idempotencyKey: string): ReturnType<typeof createPayoutInstruction> =>
    createPayoutInstruction({ idempotencyKey, businessId: "business-1", iban: listedIban });

  async function pay(idempotencyKey: string, from?: string): Promise<number> {
    const place = "/api/v1/transaction";
    const { method, headers, bodyBytes } = buildPayoutRequest({
      url: `https://127.0.0.1:${nginx.port}${place}`,
      body: instruction(idempotencyKey),
      keyid: key.keyid,
      privateKey: key.privateKeyPem,
    });
    return outside(place, { method, headers, body: bodyBytes, from });
  }

  async function notify(id: string, changes: { secret?: string } = {}): Promise<number> {
    const { WEBHOOK_PATH: place = "", ...names } = settings();
    const data = { buyer_id: "b-1", old_status: "PENDING", new_status: "ACTIVE" };
    const now = 1_800_000_000_123_456_789n;
    const body = createEnvelope({ events: [{ event_id: id, type: "buyer.status_changed", data }], now });
    const { method, headers, bodyBytes } = buildWebhookRequest({
      url: `https://127.0.0.1:${nginx.port}${place}`,
      body,
      username: names["WEBHOOK_USERNAME"] ?? "",
      password: names["WEBHOOK_PASSWORDS"] ?? "",
      secret: changes.secret ?? names["WEBHOOK_SECRETS"] ?? "",
    });
    return outside(place, { method, headers, body: bodyBytes });
  }

  beforeAll(async () => {
    await asOwner(`CREATE DATABASE ${database}`);
    pool = new Pool({ connectionString: url.href, max: 2 });
    await migrate(pool);
    await pool.query(shown("tables.sql"));
    await pool.query("INSERT INTO businesses VALUES ($1, $2)", ["business-1", listedIban]);
    mkdirSync(path.join(folder.path, "keys"));
    writeFileSync(path.join(folder.path, "keys", `${key.keyid}.pem`), key.publicKeyPem);
    ports.push(await freePort(), await freePort(), await freePort());
    const { cert, key: privateKey } = authority.issue();
    writeFileSync(path.join(folder.path, "platform.pem"), cert);
    writeFileSync(path.join(folder.path, "platform.key"), privateKey);
    for (const port of ports) await start(port);
    nginx = await startNginx((port) =>
      shown("nginx.conf")
        .replace(/^user .*\n/m, "")
        .replace("listen 443", `listen 127.0.0.1:${port}`)
        .replaceAll("/etc/nginx/tls", folder.path)
        .replaceAll(
          /127\.0\.0\.1:300([123])/g,
          (_all, number: string) => `127.0.0.1:${ports[Number(number) - 1]}`,
        )
        .replace(
          /^ *access_log (\S+);/m,
          'log_format upstream "$upstream_addr $status";\n  access_log $1 upstream;',
        ),
    );
  }, 60_000);
  afterAll(async () => {
    await nginx?.close();
    for (const child of processes.values()) child.kill("SIGKILL");
    await pool?.end();
    await asOwner(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
    folder.remove();
  });

  test("a payout is paid once through TLS, from a listed address alone", async () => {
    const first = "op-1.from.to";
    expect([await pay(first), await pay(first), await pay("op-2.from.to", "127.0.0.3")]).toEqual([
      200, 409, 401,
    ]);
  });

  test("a webhook counts once through TLS, and a forged one is not found", async () => {
    expect([await notify("ev-1"), await notify("ev-1"), await notify("ev-2", { secret: "forged" })]).toEqual([
      200, 200, 404,
    ]);
    const { rows } = await pool.query<{ event_id: string }>("SELECT event_id FROM events");
    expect(rows).toEqual([{ event_id: "ev-1" }]);
    // The caller is not told why; the log is.
    await eventually(() => log.includes("payload-signature-wrong"));
  });

  test.each([
    "/metrics",
    "/readyz",
    "/livez",
    "/metrics/",
    "//metrics",
    "/webhooks/../metrics",
    "/%6detrics",
    "/",
  ])("%s is not found from outside", async (place) => {
    expect(await outside(place)).toBe(404);
  });

  test("the machine itself reads metrics and asks for health", async () => {
    for (const port of ports) {
      expect(await Promise.all(["/metrics", "/livez", "/readyz"].map((place) => local(port, place)))).toEqual(
        [200, 200, 200],
      );
    }
    const texts = await Promise.all(
      ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
    );
    expect(texts.join("")).toMatch(/^countersign_verdicts_total\{.*outcome="pass"/m);
  });

  test("a process without its store is live and not ready, and ready again", async () => {
    const [port = 0] = ports;
    await pool.query("ALTER TABLE countersign.countersign_idempotency RENAME TO elsewhere");
    try {
      expect([await local(port, "/livez"), await local(port, "/readyz")]).toEqual([200, 503]);
      await eventually(() => /not ready: .*tables .* are missing/.test(log));
    } finally {
      await pool.query("ALTER TABLE countersign.elsewhere RENAME TO countersign_idempotency");
    }
    await eventually(async () => (await local(port, "/readyz")) === 200);
  });

  test("processes stopped by SIGTERM in turn lose no payout of the traffic", async () => {
    const keys: string[] = [];
    const refused: number[] = [];
    const load = { isOver: false };
    const payer = async (): Promise<void> => {
      while (!load.isOver && keys.length < 3_000) {
        const idempotencyKey = `op-${keys.length}.load.to`;
        keys.push(idempotencyKey);
        let status = await pay(idempotencyKey);
        if (status !== 200) refused.push(status);
        for (; status !== 200 && status !== 409; status = await pay(idempotencyKey)) await sleep(20);
      }
    };
    const ended = Promise.all(Array.from({ length: 8 }, payer));
    // Told where it is awaited.
    ended.catch(() => undefined);
    const answeredBy = (port: number): number =>
      nginx.log().filter((line) => line === `127.0.0.1:${port} 200`).length;
    await eventually(() => ports.every((port) => answeredBy(port) > 5));
    for (const port of ports) {
      expect(await stop(port)).toBe(0);
      const before = answeredBy(port);
      const others = keys.length;
      await eventually(() => keys.length > others + 10);
      expect(answeredBy(port)).toBe(before);
      await start(port);
      await eventually(() => answeredBy(port) > before + 5);
    }
    load.isOver = true;
    await ended;
    // nginx may have sent to a process at the moment of its end.
    expect(refused.filter((status) => status !== 502)).toEqual([]);
    expect(refused.length).toBeLessThanOrEqual(ports.length * 8);
    const { rows } = await pool.query<{ key: string }>(
      "SELECT idempotency_key AS key FROM payments WHERE idempotency_key LIKE '%.load.to'",
    );
    expect(new Set(rows.map((row) => row.key))).toEqual(new Set(keys));
  });

  test("SIGHUP lets a process forget a key whose file was removed", async () => {
    writeFileSync(path.join(folder.path, "keys", "other.pem"), generateKeyPair().publicKeyPem);
    expect(await pay("op-3.from.to")).toBe(200);
    const file = path.join(folder.path, "keys", `${key.keyid}.pem`);
    writeFileSync(file, "");
    for (const child of processes.values()) child.kill("SIGHUP");
    await eventually(async () => (await pay("op-4.from.to")) === 503);
    writeFileSync(file, key.publicKeyPem);
    for (const child of processes.values()) child.kill("SIGHUP");
    await eventually(async () => [200, 409].includes(await pay("op-4.from.to")));
  });
});

const systemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!systemd) reportMissing("systemd-analyze", "the unit of the page on deployment is not examined.");

(systemd ? test : test.skip)("systemd finds no fault in the unit", async () => {
  const folder = privateFolder("unit");
  const file = path.join(folder.path, "platform@3001.service");
  writeFileSync(file, shown("platform@.service").replace("/usr/bin/node", process.execPath));
  const { stdout, stderr } = await run("systemd-analyze", ["verify", "--man=no", file]);
  expect(`${stdout}${stderr}`.split("\n").filter((line) => line.includes("platform@"))).toEqual([]);
  folder.remove();
});

test("the times of the page fit each other: transaction, close, proxy, unit", () => {
  const server = readFileSync(path.join(root, "examples/snippets/src/guide/deploy.ts"), "utf8");
  const seconds = (text: string, found: RegExp): number => Number(found.exec(text)?.[1]?.replaceAll("_", ""));
  const closing = seconds(server, /timeoutMs: ([\d_]+)/) / 1_000;
  const stopping = seconds(shown("platform@.service"), /^TimeoutStopSec=(\d+)$/m);
  const reading = seconds(shown("nginx.conf"), /proxy_read_timeout (\d+)s/);
  const transaction = 10;
  expect(closing * 0.8).toBeGreaterThan(transaction);
  expect(stopping).toBeGreaterThan(closing);
  expect(reading).toBeGreaterThan(closing * 0.8);
});

test("the commands of the page can be read by a shell", () => {
  expect(spawnSync("bash", ["-n", "-c", shown("deploy.sh")]).status).toBe(0);
});
