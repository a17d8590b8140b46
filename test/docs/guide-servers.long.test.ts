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

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");

/** What a reader does by a page: a folder, the page's file in it, and its commands. */
class Reader {
  readonly #folder = mkdtempSync(join(tmpdir(), "countersign-page-"));
  #platform: ReturnType<typeof spawn> | undefined;
  #port = "";

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
    const env = { ...process.env, PORT: "0", ...more };
    const program = ["--input-type=module", "--eval", listening];
    const platform = spawn(process.execPath, program, { cwd: this.#folder, env });
    this.#platform = platform;
    this.#port = await new Promise((hear, fail) => {
      platform.once("exit", (code) => fail(new Error(`server.js ended with ${code}`)));
      platform.stdout.setEncoding("utf8").on("data", (text: string) => {
        const [, found] = /PORT=(\d+)/.exec(text) ?? [];
        if (found !== undefined) hear(found);
      });
    });
  }

  /** The commands of a region, one after the other; rejects when one fails. */
  async shell(file: string, region: string): Promise<string> {
    const commands = fileText(`site/snippets/${file}`, { region }).replaceAll(":3000/", `:${this.#port}/`);
    const { stdout } = await run("bash", ["-e", "-c", commands], { cwd: this.#folder });
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
    expect(asExpected(await reader.shell("hono.sh", "pay"))).toBe(2);
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
