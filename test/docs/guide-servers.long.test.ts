// The servers that the guide shows, started as its readers start them, and its commands sent to them.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { fileText } from "../../site/scripts/file-text.mjs";
import { eventually } from "../support/runs/eventually.ts";
import { freePort } from "../support/servers/private-process.mjs";

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

/** What a reader does by a page: a folder, the page's file in it, and its commands. */
class Reader {
  readonly #folder = mkdtempSync(join(tmpdir(), "countersign-page-"));
  #platform: ReturnType<typeof spawn> | undefined;
  #port = "";
  #told = "";

  constructor(type: "module" | "commonjs") {
    // In the place of the page's first step, which installs what is not published here.
    symlinkSync(join(root, "node_modules"), join(this.#folder, "node_modules"), "junction");
    writeFileSync(join(this.#folder, "package.json"), JSON.stringify({ type }));
  }

  /** Starts the page's file as it is; the port that the system chose is told beside it. */
  async start(file: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
    cpSync(join(root, file), join(this.#folder, "server.js"));
    const listening = `
      import { Server } from "node:net";
      const { listen } = Server.prototype;
      Server.prototype.listen = function (...args) {
        this.once("listening", () => console.log("PORT=" + this.address().port));
        return listen.apply(this, args[0] === 3000 ? [0, ...args.slice(1)] : args);
      };
      await import("./server.js");
    `;
    const env = { ...process.env, COUNTERSIGN_STDERR: "", PORT: "0", ...more };
    const program = ["--input-type=module", "--eval", listening];
    const platform = spawn(process.execPath, program, { cwd: this.#folder, env });
    this.#platform = platform;
    platform.stderr.setEncoding("utf8").on("data", (text: string) => (this.#told += text));
    this.#port = await new Promise((hear, fail) => {
      platform.once("exit", (code) => fail(new Error(`server.js ended with ${code}`)));
      platform.stdout.setEncoding("utf8").on("data", (text: string) => {
        const [, found] = /PORT=(\d+)/.exec(text) ?? [];
        if (found !== undefined) hear(found);
      });
    });
  }

  /** The codes of what the platform has refused, as its lines on stderr have them. */
  refusals(): readonly string[] {
    return [...this.#told.matchAll(/^countersign: \S+ refused a \S+ with \d{3} (\S+):/gm)].map(
      ([, code = ""]) => code,
    );
  }

  /** The commands of a region as they are typed here. */
  commands(file: string, region: string): string {
    const typed = fileText(`site/snippets/${file}`, { region }).replaceAll(":3000/", `:${this.#port}/`);
    // What npx finds there, without the second that each npx takes.
    return `${typed.replaceAll("npx countersign ", "node_modules/.bin/countersign ").trim()}\n`;
  }

  /** The commands of a region, one after the other; rejects when one fails. */
  async shell(file: string, region: string): Promise<string> {
    return this.run(this.commands(file, region));
  }

  async run(script: string): Promise<string> {
    const { stdout } = await run("bash", ["-e", "-c", script], { cwd: this.#folder });
    return stdout;
  }

  async end(): Promise<void> {
    if (this.#platform?.kill() === true) await once(this.#platform, "exit");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const asExpected = (told: string): number => told.match(/^\S+: as expected$/gm)?.length ?? 0;

describe.each([
  ["README", "ts", "module", "examples/snippets/src/integration.ts"],
  ["guide/quick-start", "js", "module", "examples/snippets/src/guide/quick-start.ts"],
  ["guide/hono-nextjs", "js", "module", "examples/hono/src/payouts.ts"],
  ["guide/fastify", "js", "module", "examples/fastify/src/payouts.ts"],
  ["guide/express-4-commonjs", "js", "commonjs", "examples/express4-commonjs/src/payouts.js"],
] as const)("the server of the page %s", (page, language, type, file) => {
  const reader = new Reader(type);
  beforeAll(async () => {
    await reader.shell("quick-start.sh", "keys");
    await reader.start(file);
  });
  afterAll(async () => reader.end());

  test("is shown there", () => {
    if (page === "README") expect(read("README.md")).toContain(`\`\`\`ts\n${fileText(file, {}).trim()}\n`);
    else expect(read(`site/pages/${page}.md`)).toContain(`\`\`\`${language} file=${file}\n`);
  });

  test("pays", async () => {
    expect(await reader.shell("quick-start.sh", "pay")).toContain("200 OK, expected 2xx");
  });

  test("refuses what must not pay, and has paid each key once", async () => {
    const done = async (): Promise<number> =>
      (await reader.shell("quick-start.sh", "look")).match(/^payout:.* done /gm)?.length ?? 0;
    const before = await done();
    expect(asExpected(await reader.shell("quick-start.sh", "refuse"))).toBe(3);
    expect((await done()) - before).toBe(2);
  });
});

describe("the server of the page guide/webhooks, which takes payouts and webhooks", () => {
  const reader = new Reader("module");
  const file = "examples/snippets/src/guide/quick-start-webhooks.ts";
  const settings = reader.commands("webhooks.sh", "settings");
  beforeAll(async () => {
    await reader.shell("quick-start.sh", "keys");
    const named = [...settings.matchAll(/(WEBHOOK_[A-Z]+)=(\S+)/g)].map(([, name, value]) => [name, value]);
    expect(named).toHaveLength(3);
    await reader.start(file, Object.fromEntries(named) as Record<string, string>);
  });
  afterAll(async () => reader.end());

  test("is shown there", () => {
    expect(read("site/pages/guide/webhooks.md")).toContain(`\`\`\`js file=${file}\n`);
  });

  test("takes a payout and a webhook by the commands of the page", async () => {
    expect(asExpected(await reader.run(settings + reader.commands("webhooks.sh", "send")))).toBe(2);
  });

  test("takes neither without the proxy that the command line plays", async () => {
    const direct = reader.commands("webhooks.sh", "send").replaceAll(/ \\\n {2}--forwarded-for \S+/g, "");
    const [payout = "", webhook = ""] = direct.split(/(?<=\n)(?=\S+countersign webhook)/);
    const told = await reader.run(
      `${settings}${payout.trim()} --expect 401\n${webhook.trim()} --expect 404\n`,
    );
    expect(asExpected(told)).toBe(2);
    await eventually(() => reader.refusals().length === 2);
    expect(reader.refusals()).toEqual(["ip-not-allowed", "https-required"]);
  });

  test("takes the event that the sandbox is told to send", async () => {
    const port = await freePort();
    const [sandbox, trigger] = ["sandbox", "trigger"].map((region) =>
      reader.commands("webhooks.sh", region).replaceAll(/(?<=:|--port )4000/g, String(port)),
    );
    // The sandbox has a process group of its own, which ends with the script.
    const told = await reader.run(`${settings}
      set -m
      { ${sandbox}} >/dev/null &
      trap 'kill -- -$!' EXIT
      until curl -s http://127.0.0.1:${port} >/dev/null; do sleep 0.2; done
      ${trigger}`);
    expect(told).toMatch(/ #1 +delivered +200 +buyer\.status_changed\n$/);
  }, 60_000);
});

describe.each([
  ["hono-nextjs", "module", "examples/hono/dist/server.js"],
  ["fastify", "module", "examples/fastify/dist/server.js"],
  ["express-4-commonjs", "commonjs", "examples/express4-commonjs/src/server.js"],
] as const)("the server behind a proxy of the page %s", (_page, type, file) => {
  const settings = Object.fromEntries(
    read("site/snippets/platform.env")
      .split("\n")
      .filter((line) => /^[A-Z]/.test(line))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  const reader = new Reader(type);
  let publicKey = "";
  beforeAll(async () => {
    await reader.shell("quick-start.sh", "keys");
    publicKey = (await reader.shell("quick-start.sh", "public-key")).trim().slice(1, -1);
    // The port is the system's.
    await reader.start(file, { ...settings, PORT: "0", PUBLIC_KEY: publicKey });
  });
  afterAll(async () => reader.end());

  test("reads the settings that the page names, and no other", () => {
    const source = read(file.replace("/dist/", "/src/").replace(/(?<=hono.*|fastify.*)\.js$/, ".ts"));
    const names = [...source.matchAll(/(?:setting\(|env\[)"([A-Z_]+)"|env\.([A-Z_]+)/g)];
    expect(new Set(names.map(([, first, second]) => first ?? second))).toEqual(
      new Set(Object.keys(settings)),
    );
  });

  test("takes a public key whose line ends are two characters, and believes the proxy", async () => {
    expect(publicKey).toMatch(/^-----BEGIN PUBLIC KEY-----\\n/);
    expect(asExpected(await reader.shell("hono.sh", "pay"))).toBe(3);
  });
});

describe.each([
  [
    "site/pages/guide/other-webhooks.md",
    "examples/snippets/src/guide/github-webhook.ts",
    "github-webhook.sh",
    [200, 200, 401],
  ],
  [
    "site/pages/guide/idempotency-key.md",
    "examples/snippets/src/guide/charges.ts",
    "charges.sh",
    [201, 201, 422],
  ],
] as const)("the server of %s", (_page, file, commands, statuses) => {
  const reader = new Reader("module");
  beforeAll(async () => reader.start(file, { WEBHOOK_SECRET: "test-secret" }), 60_000);
  afterAll(async () => reader.end());

  test("answers as the page says", async () => {
    const told = await reader.shell(commands, "send");
    expect(told.match(/ \d{3}$/gm)?.map(Number)).toEqual(statuses);
    const [first, second] = told.split("\n").map((line) => /"id":"[^"]+"/.exec(line)?.[0]);
    expect(second).toBe(first);
    const marks = fileText(`site/snippets/${commands}`, { region: "send" }).match(/(?<=# )\d{3}/g);
    expect(marks?.map(Number)).toEqual(statuses);
  });
});
