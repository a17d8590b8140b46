import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import Database from "libsql";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { capture, killAll, listeningUrl, type Captured } from "./platform-process.ts";
import { sendHalf } from "./running-platform.ts";
import { makeTestKey, payoutBody } from "./signer.ts";

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));

// Each test starts a process, on a machine that may be busy.

const key = makeTestKey("k1");

let folder: string;
let keys: string;
let busy: Server;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "platform-main-"));
  keys = file("keys.json", JSON.stringify({ k1: key.publicKeyPem }));
  busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
});

afterEach(killAll);

afterAll(async () => {
  await new Promise((resolve) => busy.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, content: string): string {
  const location = path.join(folder, name);
  writeFileSync(location, content);
  return location;
}

function databaseWith(statement: string): string {
  const location = path.join(folder, `${randomUUID()}.db`);
  const database = new Database(location);
  database.exec(statement);
  database.close();
  return location;
}

function start(env: Readonly<Record<string, string | undefined>> = {}): Captured {
  const settings = { PORT: "0", STORE_URL: "memory:", PAYOUT_KEYS: keys, LOG_LEVEL: "info", ...env };
  return capture(process.execPath, [main], { cwd: folder, env: settings });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function untilSignalled({ stderr }: Captured): Promise<void> {
  await eventually(() => stderr().includes("shutting down"));
}

describe("a start with a bad value", () => {
  const sqlite = (location: string) => ({ STORE_URL: `sqlite:${location}` });
  const foreign = (statement: string) => () => sqlite(databaseWith(statement));
  const noDatabase = { STORE_URL: "redis://db", DATABASE_URL: undefined };

  test.each<[string, () => Readonly<Record<string, string | undefined>>, variable: string, reason: RegExp]>([
    ["a port that is no number", () => ({ PORT: "abc" }), "PORT", /an integer from 0 to 65535, got "abc"$/],
    ["Redis without a database", () => noDatabase, "DATABASE_URL", /URL of a database for the payouts/],
    ["a folder for a database", () => sqlite(folder), "STORE_URL", /a database .* \(it is no file\)$/],
    ["a file for the folder", () => sqlite(`${keys}/p.db`), "STORE_URL", /\((?:EEXIST|ENOTDIR): .*\)$/],
    ["another program's", foreign("PRAGMA application_id = 1"), "STORE_URL", /belongs to another program\)$/],
    ["other tables", foreign("CREATE TABLE webhook_events (id)"), "STORE_URL", /the tables of the platform /],
    ["a busy port", () => ({ PORT: busyPort() }), "PORT", /a free port, \d+ is in use on 127\.0\.0\.1$/],
  ])("ends with one line about %s", async (_name, env, variable, reason) => {
    await expectOneLine(start({ LOG_LEVEL: "silent", ...env() }), variable, reason);
  });
});

const busyPort = (): string => String((busy.address() as AddressInfo).port);

async function expectOneLine(platform: Captured, variable: string, reason: RegExp): Promise<void> {
  expect(await platform.ended).toBe(1);
  expect(platform.stderr()).toMatch(new RegExp(`^${variable}: expected [^\\n]*\n$`));
  expect(platform.stderr().trimEnd()).toMatch(reason);
  expect(platform.stdout()).toBe("");
}

// Elsewhere these names mean nothing.
const describeOnLinux = process.platform === "linux" ? describe : describe.skip;

describeOnLinux("a start with a path of the system", () => {
  test.each<[string, string, string, RegExp]>([
    ["a new folder in /proc", "STORE_URL", "sqlite:/proc/countersign/platform.db", /\(ENOENT: .*\)$/],
    ["a new file in /proc", "STORE_URL", "sqlite:/proc/p.db", /\(no file can be opened or created there\)$/],
    ["a device for a database", "STORE_URL", "sqlite:/dev/null", /\(it is no file\)$/],
    ["a device for the key of TLS", "TLS_KEY", "/dev/zero", /\(it is no file\), got "\/dev\/zero"$/],
  ])("ends with one line about %s", async (_name, variable, value, reason) => {
    await expectOneLine(start({ LOG_LEVEL: "silent", [variable]: value }), variable, reason);
  });
});

describe("a platform", () => {
  test("creates the folder of its database, says where it listens, and ends with 0 on SIGTERM", async () => {
    const platform = start({ STORE_URL: "sqlite:./new/folder/platform.db" });
    const url = await listeningUrl(platform);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(platform.stdout()).toBe(`listening on ${url}\n`);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect(existsSync(path.join(folder, "new/folder/platform.db"))).toBe(true);
    platform.child.kill("SIGTERM");
    expect(await platform.ended).toBe(0);
    expect(platform.stderr()).toContain("BUSINESSES is not set");
    expect(platform.stderr()).toContain("there is no webhook route");
  });

  const credentials = {
    WEBHOOK_USERNAME: "service",
    WEBHOOK_PASSWORD: "test-password",
    WEBHOOK_SECRETS: "test-secret",
  };

  test("says where it takes webhooks when it has made up the path", async () => {
    const platform = start({ ...credentials, WEBHOOK_ALLOW_HTTP: "1" });
    const url = await listeningUrl(platform);
    const [webhooks, listening] = platform.stdout().split("\n");
    expect(webhooks?.startsWith(`webhooks at ${url}/`)).toBe(true);
    expect(webhooks?.slice(`webhooks at ${url}`.length)).toMatch(/^\/[0-9a-f]{32,}$/);
    expect(listening).toBe(`listening on ${url}`);
    expect(platform.stderr()).toContain("WEBHOOK_PATH is not set");
    expect(platform.stderr()).toContain("accepted over plain http");
    expect(platform.stderr()).not.toContain(String(webhooks).split("/").at(-1));
  });

  test("keeps a path that was set to itself, and says that plain http reaches no webhook route", async () => {
    const platform = start({ ...credentials, WEBHOOK_PATH: "/hooks/4f6c9d0a" });
    const url = await listeningUrl(platform);
    expect(platform.stdout()).toBe(`listening on ${url}\n`);
    expect(platform.stderr()).toContain("every webhook will be refused");
    expect(platform.stderr()).not.toContain("4f6c9d0a");
  });

  test("ends what it has begun, also when a Ctrl-C arrives twice as it does under npm", async () => {
    const platform = start();
    const request = await sendHalf(await listeningUrl(platform), key, payoutBody("op.from.to"));
    platform.child.kill("SIGINT");
    await untilSignalled(platform);
    platform.child.kill("SIGINT");
    await pause(100);
    request.sendRest();
    expect(await request.answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(await platform.ended).toBe(0);
  });

  test("ends at once with 1 at a later signal", async () => {
    const platform = start();
    const request = await sendHalf(await listeningUrl(platform), key, payoutBody("op.from.to"));
    platform.child.kill("SIGTERM");
    await untilSignalled(platform);
    // Longer than one Ctrl-C may take to arrive twice.
    await pause(1_200);
    platform.child.kill("SIGTERM");
    expect(await platform.ended).toBe(1);
    expect(await request.answer).toBe("");
  });
});
