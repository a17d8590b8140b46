import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  capture,
  killAll,
  listeningUrl,
  signalGroup,
  type Captured,
} from "../../platform/test/platform-process.ts";

const demo = new URL("../dist/demo.js", import.meta.url);
const countersign = fileURLToPath(new URL("../../../packages/tools/cli/dist/cli.js", import.meta.url));

let folder: string;
let port: string;

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "platform-demo-"));
  const probe = await listen();
  port = String((probe.address() as AddressInfo).port);
  await new Promise((resolve) => probe.close(resolve));
});

afterEach(async () => {
  await killAll();
  rmSync(folder, { recursive: true, force: true });
});

function listen(): Promise<Server> {
  const server = createServer();
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function startDemo(env: Readonly<Record<string, string>>): Captured {
  const places = JSON.stringify({ folder: path.join(folder, "demo"), cwd: folder });
  const script = `import { runDemo } from ${JSON.stringify(demo.href)}; await runDemo([], ${places});`;
  return capture(process.execPath, ["--input-type=module", "-e", script], { cwd: folder, env });
}

type Ended = Promise<number | NodeJS.Signals | null>;

/** Runs the line that the demo prints for sending a payout by hand, without the npm in front of it. */
function sendByHand(shown: Captured, ...further: readonly string[]): Ended {
  return runPrinted(/npm run countersign -- (?<args>payout (?:.*\\\n)*.*)/.exec(shown.stdout()), further);
}

function runPrinted(line: RegExpExecArray | null, further: readonly string[]): Ended {
  const args = (line?.groups?.["args"] ?? "").split(/(?: \\\n)? +/);
  return capture(process.execPath, [countersign, ...args, ...further], { cwd: folder }).ended;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 60_000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error("the condition was not met in time");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    await fetch(`${url}/healthz`);
    return true;
  } catch {
    return false;
  }
}

async function inspected(what: string): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/inspect/${what}`)).text();
}

/** Both pages are there, and the sandbox's delivers a webhook; no line is too long for a terminal of 60 columns. */
async function expectPages(shown: Captured): Promise<void> {
  const pages = [...shown.stdout().matchAll(/^ {2}(?<url>http:\S+)\/#token=(?<token>\S+)$/gm)];
  expect(pages).toHaveLength(2);
  for (const { groups } of pages) {
    const page = await fetch(`${groups?.["url"]}/`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  }
  const { url = "", token = "" } = pages[0]?.groups ?? {};
  const overview = await fetch(`${url}/sandbox/overview`, { headers: { "X-Page-Token": token } });
  expect([overview.status, await overview.text()]).toEqual([
    200,
    expect.stringContaining(`http://127.0.0.1:${port}/`),
  ]);
  const change = await fetch(`${url}/sandbox/buyers/by-hand/status`, {
    method: "POST",
    headers: { "X-Page-Token": token, "Content-Type": "application/json", Origin: url },
    body: JSON.stringify({ status: "ACTIVE" }),
  });
  expect([change.status, await change.text()]).toEqual([200, expect.anything()]);
  await until(async () => (await inspected("state")).includes("by-hand"));
  expect(columnsOf(shown.stdout())).toBeLessThanOrEqual(60);
}

const columnsOf = (text: string): number => Math.max(...text.split("\n").map((line) => line.length));

async function stop(running: Captured): Promise<void> {
  signalGroup(running, "SIGINT");
  expect(await running.ended).toBe(0);
}

// It plays all its cases before it listens: slowly on a busy machine.
const playedWithinMs = 55_000;

describe("the demo", () => {
  test("goes on serving, prints a line that works by hand, ends cleanly, and remembers paid keys at the next start", async () => {
    const first = startDemo({ PORT: port });
    expect(await listeningUrl(first, playedWithinMs)).toBe(`http://127.0.0.1:${port}`);
    await expectPages(first);
    expect(await sendByHand(first, "--idempotency-key", "by-hand.from.to")).toBe(0);
    await stop(first);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();

    const second = startDemo({ PORT: port });
    await listeningUrl(second, playedWithinMs);
    expect(second.stdout()).not.toMatch(/^NO /m);
    expect(await sendByHand(second, "--idempotency-key", "by-hand.from.to", "--expect", "409")).toBe(0);
    expect(await inspected("state")).toContain("by-hand");
    await stop(second);
  });

  test("leaves no platform behind when it is killed", async () => {
    const running = startDemo({ PORT: port });
    const url = await listeningUrl(running, playedWithinMs);
    running.child.kill("SIGKILL");
    await running.ended;
    try {
      await until(async () => !(await answers(url)));
    } finally {
      signalGroup(running, "SIGKILL");
    }
  });

  test("says that its port is in use", async () => {
    const busy = await listen();
    const taken = String((busy.address() as AddressInfo).port);
    const running = startDemo({ PORT: taken });
    expect(await running.ended).toBe(1);
    const inUse = `PORT: expected a free port, ${taken} is in use on 127\\.0\\.0\\.1`;
    expect(running.stderr()).toMatch(new RegExp(`^${inUse}\nTry PORT=\\d+ npm start\n$`));
    expect(columnsOf(running.stderr())).toBeLessThanOrEqual(60);
    await new Promise((resolve) => busy.close(resolve));
  });
});
