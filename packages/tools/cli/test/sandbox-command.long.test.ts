import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { close, listen } from "@countersign/test-support/servers/http-client.ts";
import { builtCli, expectOneLine, run, temporaryFolder } from "./cli-bench.ts";
import { registration } from "../../devtools/test/sandbox/service-bench.ts";

const folder = temporaryFolder();
const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});

/** `countersign sandbox` as a process that has said where it listens. */
interface RunningSandbox {
  readonly child: ReturnType<typeof spawn>;
  readonly url: string;
  /** What it has written until now. */
  readonly written: () => { readonly out: string; readonly err: string };
  /** Sends a signal, and gives exit code and what was written to stderr. */
  end(signal?: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<{ code: unknown; err: string }>;
}

async function start(args: readonly string[], env: Record<string, string> = {}): Promise<RunningSandbox> {
  const child = spawn(process.execPath, [builtCli, "sandbox", ...args], {
    env: { ...process.env, FORCE_COLOR: undefined, COUNTERSIGN_API_KEY: undefined, ...env },
  });
  running.push(child);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const closed = once(child, "close");
  await Promise.race([once(child.stdout, "data"), closed]);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(out)?.[0];
  if (url === undefined) throw new Error(`the sandbox did not start: ${out}${err}`);
  return {
    child,
    url,
    written: () => ({ out, err }),
    async end(signal) {
      if (signal !== undefined) child.kill(signal);
      const [code] = (await closed) as [unknown];
      return { code, err };
    },
  };
}

async function call(url: string, key: string, body?: unknown): Promise<unknown> {
  const response = await fetch(url, {
    headers: { "X-API-KEY": key, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, ...((await response.json()) as object) };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

describe("countersign sandbox", () => {
  test("makes up an API key, prints it, and ends with 0 at SIGTERM", async () => {
    const sandbox = await start([]);
    const key = /^X-API-KEY {2}(\S{32})$/m.exec(sandbox.written().out)?.[1] ?? "";
    expect(await call(`${sandbox.url}/sandbox/buyers/b-1/status`, key, { status: "ACTIVE" })).toMatchObject({
      status: "ACTIVE",
      old_status: "PENDING",
    });
    expect(await call(`${sandbox.url}/sandbox/buyers/b-1`, `${key}x`)).toMatchObject({ status: 401 });
    expect(sandbox.written().out).toContain("in memory");
    expect(await sandbox.end("SIGTERM")).toEqual({ code: 0, err: "" });
  });

  test("serves a page, which signs with the key that is named, or none", async () => {
    const { code } = await run(["keygen", "--out", folder, "--keyid", "page"]);
    expect(code).toBe(0);
    const key = join(folder, "page.private.pem");
    const flags = ["--key", key, "--keyid", "page", "--payout-url", "http://127.0.0.1:9/pay", "--json"];
    const { url, written } = await start(flags);
    const { page, apiKey } = JSON.parse(written().out) as Record<string, string>;
    expect(page).toMatch(/#token=[\w-]{24}$/);
    expect((await fetch(String(page))).headers.get("Content-Type")).toMatch(/^text\/html/);
    const overview = await call(`${url}/sandbox/overview`, String(apiKey));
    expect(overview).toMatchObject({
      payouts: { keyid: "page", keyFile: key, url: "http://127.0.0.1:9/pay" },
    });
    expect(JSON.stringify(overview)).not.toContain("PRIVATE");

    const without = await start(["--no-page"]);
    expect(without.written().out).not.toContain("#token");
    expect(await call(without.url, "any")).toMatchObject({ status: 401 });
  });

  test.each<[string, string[], string]>([
    ["a key without its name", ["--key", "x.pem"], "--key and --keyid go together"],
    ["a name without its key", ["--keyid", "x"], "--key and --keyid go together"],
    ["a key that is not there", ["--key", join(folder, "none.pem"), "--keyid", "x"], "none.pem"],
    ["plain http to another host", ["--payout-url", "http://platform.example/pay"], "--allow-http"],
    ["what is no URL", ["--payout-url", "ftp"], "page.payoutUrl"],
  ])("refuses, for the page, %s", async (_name, flags, named) => {
    const { code, out, err } = await run(["sandbox", ...flags]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(named);
  });

  test("takes the API key from the environment, and does not print it", async () => {
    const sandbox = await start([], { COUNTERSIGN_API_KEY: "test-api-key" });
    expect(sandbox.written().out).not.toMatch(/test-api-key|X-API-KEY/);
    expect(await call(`${sandbox.url}/sandbox/deliveries`, "test-api-key")).toMatchObject({ deliveries: [] });
  });

  test("ends with 0 at a Ctrl-C under npm, which comes a second time while it ends", async () => {
    const sandbox = await start([]);
    const { port } = new URL(sandbox.url);
    // It waits for the request to be complete, or a moment.
    const request = connect(Number(port), "127.0.0.1");
    await once(request, "connect");
    request.write("GET / HTTP/1.1\r\n");
    // Answered once the line before is there, too.
    await call(`${sandbox.url}/sandbox/deliveries`, "test-api-key");
    sandbox.child.kill("SIGINT");
    await eventually(async () => !(await listens(Number(port))));
    const ended = sandbox.end("SIGINT");
    request.destroy();
    expect(await ended).toEqual({ code: 0, err: "" });
  });

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "keeps its state in --db over %s, for one process at a time",
    async (signal) => {
      const file = join(folder, `${signal}.db`);
      const args = ["--db", file, "--api-key", "test-api-key"];
      const first = await start(args);
      await call(`${first.url}/sandbox/sellers/s-1/status`, "test-api-key", { status: "REJECTED" });
      expect(await run(["sandbox", ...args])).toEqual({
        code: 2,
        out: "",
        err: `error: --db: the database ${JSON.stringify(file)} is in use by another sandbox\n`,
      });
      await first.end(signal);
      const second = await start(args);
      expect(second.written().out).toContain(file);
      expect(await call(`${second.url}/sandbox/sellers/s-1`, "test-api-key")).toMatchObject({
        status: "REJECTED",
      });
      expect(await second.end("SIGTERM")).toEqual({ code: 0, err: "" });
    },
  );

  test("hands its delivery flags on", async () => {
    const received: string[] = [];
    const { server: receiver, port } = await listen((req, res) => {
      let body = "";
      req.on("data", (chunk: Buffer) => (body += chunk.toString()));
      req.on("end", () => {
        received.push(body);
        res.end();
      });
    });
    const hooks = `http://127.0.0.1:${port}/hooks`;
    const flags = "--batch 60000000 --max-events 3 --duplicate --twice-at-once --allow-http".split(" ");
    const sandbox = await start([...flags, "--speed", "1000", "--api-key", "test-api-key"]);
    const endpoints = `${sandbox.url}/api/v2/b2b-payments/webhook-endpoints`;
    await call(endpoints, "test-api-key", { url: hooks, ...registration });
    for (const id of ["a", "b", "c"]) {
      await call(`${sandbox.url}/sandbox/events`, "test-api-key", { type: "t", data: {}, event_id: id });
    }
    // One webhook of three events, sent twice at once and once more twice at once.
    await eventually(() => received.length >= 4);
    await sandbox.end("SIGTERM");
    await close(receiver);
    expect(new Set(received).size).toBe(1);
    expect(JSON.parse(received[0] ?? "")).toMatchObject({
      events: [{ event_id: "a" }, { event_id: "b" }, { event_id: "c" }],
    });
  });

  test.each([false, true])("prints a line for each delivery as it happens; as JSON: %p", async (json) => {
    const { server: receiver, port } = await listen((_req, res) => res.end());
    const hooks = `http://127.0.0.1:${port}/hooks`;
    const sandbox = await start(["--api-key", "test-api-key", ...(json ? ["--json"] : [])]);
    const { url, child, written } = sandbox;
    await call(`${url}/api/v2/b2b-payments/webhook-endpoints`, "test-api-key", {
      url: hooks,
      ...registration,
    });
    const event = { type: "buyer.status_changed", data: {} };
    await call(`${url}/sandbox/events`, "test-api-key", event);
    const line = json
      ? /^\{"delivery":\{"id":1,.*"state":"delivered".*\}\}$/m
      : /^\d\d:\d\d:\d\dZ +#1 +delivered +200 +buyer\.status_changed$/m;
    await eventually(() => line.test(written().out));
    // Nobody reads its output any more.
    child.stdout?.destroy();
    await call(`${url}/sandbox/events`, "test-api-key", event);
    expect(await sandbox.end()).toEqual({ code: 1, err: "" });
    expect(written().out).not.toContain("auth_password");
    await close(receiver);
  });

  test("refuses http endpoints of other hosts without --allow-http", async () => {
    const sandbox = await start(["--api-key", "test-api-key"]);
    const endpoints = `${sandbox.url}/api/v2/b2b-payments/webhook-endpoints`;
    const register = (url: string) => call(endpoints, "test-api-key", { url, ...registration });
    expect(await register("http://platform.example/hooks")).toMatchObject({ status: 400 });
    expect(await register("http://127.0.0.1:1/hooks")).toMatchObject({ status: 201 });
    await sandbox.end("SIGTERM");
  });

  test("says so when the port is taken", async () => {
    const { url, end } = await start(["--api-key", "test-api-key"]);
    const { port } = new URL(url);
    expect(await run(["sandbox", "--port", port, "--api-key", "k"])).toEqual({
      code: 2,
      out: "",
      err: `error: --port ${port}: cannot listen there on 127.0.0.1 (EADDRINUSE)\n`,
    });
    await end("SIGTERM");
  });

  test("ends within this process too", async () => {
    const ended = run("sandbox --api-key test-api-key --reorder 0.5 --drop-connection 1");
    let told = false;
    const telling = setInterval(() => (told = process.emit("SIGTERM")), 20);
    const { code, out, err } = await ended;
    clearInterval(telling);
    expect({ told, code, err }).toEqual({ told: true, code: 0, err: "" });
    expect(out).toMatch(
      /^listening {2}(http:\/\/127\.0\.0\.1:\d+)\npage {7}\1\/#token=[\w-]{24}\ndatabase {3}in memory; --db keeps it\n$/,
    );
  });
});

describe("bad usage of countersign sandbox", () => {
  const text = join(folder, "text");
  writeFileSync(text, "x".repeat(500));
  test.each<[string, readonly string[], RegExp]>([
    ["an empty API key", ["--api-key", ""], /^error: --api-key must be 1 to 256 printable ASCII characters/],
    ["an API key of two words", ["--api-key", "test key"], /--api-key must be/],
    ["any address", ["--host", "0.0.0.0"], /^error: --host must be a loopback address/],
    ["a port that is none", ["--port", "70000"], /--port: expected an integer from 0 to 65535/],
    ["a speed that is none", ["--speed", "fast"], /--speed: expected a number from 0.001 to 1000000/],
    ["a speed of zero", ["--speed", "0"], /--speed: expected/],
    ["a chance above 1", ["--duplicate", "1.5"], /--duplicate: expected a number from 0 to 1/],
    ["a chance below 0", ["--reorder=-1"], /--reorder: expected a number from 0 to 1/],
    ["a batch without an end", ["--batch", "Infinity"], /--batch: expected an integer/],
    ["webhooks without events", ["--max-events", "0"], /--max-events: expected an integer from 1/],
    ["a missing folder", ["--db", join(folder, "none", "s.db")], /--db: .*its folder does not exist/],
    ["a database that is none", ["--db", text], /--db: .*is no SQLite database/],
    ["an empty file name", ["--db", ""], /^error: --db must be a file name/],
    ["a --ca that holds no certificate", ["--ca", text], /--ca .*holds no certificate/],
    ["an unknown flag", ["--tls"], /unknown option '--tls'/],
  ])("%s ends with 2 and one line", async (_name, args, line) => {
    const ended = await run(["sandbox", ...args]);
    expectOneLine(ended, 2, line);
    expect(ended.err).not.toContain("test key");
  });

  test("an empty COUNTERSIGN_API_KEY is no permission to go without", async () => {
    await expect(start([], { COUNTERSIGN_API_KEY: "" })).rejects.toThrow(/--api-key must be/);
  });
});
