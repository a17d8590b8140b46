import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { expand, fileText } from "../../site/scripts/expand.mjs";
import { forVitePress } from "../../site/scripts/page-text.mjs";
import { table as guardOptions } from "../../packages/checks/idempotency-guard/dist/options.js";
import { siteLinks } from "./site-links.ts";
import { plain } from "./written-options.ts";

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (...path: string[]): string => readFileSync(join(root, ...path), "utf8");
const pages = readdirSync(join(root, "site/pages"), { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".md"),
);

// What is copied out of a page was compiled or run: it comes from a file, or is what a command has printed.
test.each(pages)("the page %s has no code of its own", (name) => {
  const text = read("site/pages", name);
  const fences = [...text.matchAll(/^ *```([^\n`]+)$/gm)].map(([, info = ""]) => info);
  expect(fences.filter((info) => info !== "text" && !/^\w+ (file|run)=/.test(info))).toEqual([]);
});

test.each(pages)("what the page %s includes is there", (name) => {
  const text = expand(read("site/pages", name), { pictureOf: (picture) => picture, rewrite: (part) => part });
  expect(text).not.toMatch(/^ *```\w+ (file|run)=|^<!-- (include|picture)/m);
});

const fencesOf = (text: string): string[] => text.match(/^ *```[\s\S]*?^ *```$/gm) ?? [];

test.each(pages)("what the page %s shows in a fence reaches the reader as it is", (name) => {
  const text = expand(read("site/pages", name), { pictureOf: () => "", rewrite: (part) => part });
  const shown = forVitePress(text);
  expect(fencesOf(text).filter((fence) => !shown.includes(fence))).toEqual([]);
});

test("a comment in a fence is no heading, and its indented lines are no fence of their own", () => {
  const fence = "```nginx\n# a comment\n\n    listen 443;\n```";
  const page = `# Title\n\n${fence}\n\n# Second\n\n    npm test\n\nend\n`;
  const shown = `# Title\n\n${fence}\n\n## Second\n\n\`\`\`text\nnpm test\n\`\`\`\n\nend\n`;
  expect(forVitePress(page)).toBe(shown);
});

const store = "examples/custom-store/src";
test.each<[page: string, language: string, file: string, region: string | undefined]>([
  ["docs/keys.md", "ts", "examples/snippets/src/guide/keys-of-url.ts", undefined],
  ["docs/explain.md", "ts", "examples/snippets/src/reference/explained-log.ts", undefined],
  ["docs/using.md", "js", "site/snippets/jest.config.js", undefined],
  ["docs/idempotency-key.md", "js", "examples/snippets/src/guide/charges.ts", undefined],
  ["docs/idempotency-key.md", "sh", "site/snippets/charges.sh", "install"],
  ["docs/idempotency-key.md", "sh", "site/snippets/charges.sh", "send"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/tables.ts`, "tables"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/claim-decision.ts`, "decide"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/idempotency-store.ts`, "claim"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/idempotency-store.ts`, "lock"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/idempotency-store.ts`, "step"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/idempotency-store.ts`, "update"],
  ["packages/stores/store-contract/WRITING-A-STORE.md", "ts", `${store}/idempotency-store.ts`, "complete-in"],
])("the code of %s in %s is that of %s", (page, language, file, region) => {
  const blocks = [...read(page).matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))];
  const codeOf = (text: string): string => text.replace(/^\/\/.*\n/, "").trimEnd();
  expect(blocks.map(([, code = ""]) => codeOf(code))).toContain(codeOf(fileText(file, { region })));
});

test("the README leads to pages in the repository, which its reader has, and to none that has to be served", () => {
  const readme = read("README.md");
  expect(readme.match(/\]\(docs\/pages\/[^)]+\.md/g)?.length).toBeGreaterThan(10);
  expect(siteLinks(readme)).toEqual([]);
});

test("the page of webhooks signs by hand what it says", async () => {
  const commands = fileText("site/snippets/webhook-signature.sh");
  const { stdout } = await run("bash", ["-e", "-c", commands]);
  expect(stdout.trim()).toBe(/# (\S+)\n$/.exec(commands)?.[1]);
});

test("the sizes that the page on several machines tells are those of the code", () => {
  const page = read("site/pages/guide/several-machines.md");
  const told = Object.fromEntries(
    [...page.matchAll(/^\| `(leaseMs|maxWaiters)`, ([\d,]+)( seconds)? /gm)].map(
      ([, name = "", number = "", seconds]) => [
        name,
        Number(number.replaceAll(",", "")) * (seconds === undefined ? 1 : 1000),
      ],
    ),
  );
  const inCode = (name: keyof typeof guardOptions): number =>
    Number(plain(guardOptions[name].byDefault).replaceAll(",", ""));
  expect(told).toEqual({ leaseMs: inCode("leaseMs"), maxWaiters: inCode("maxWaiters") });
});

test("the recording shows the cases of the demo, all as expected", () => {
  const [, ...events] = read("site/recordings/demo.cast").trimEnd().split("\n");
  const output = events.map((line) => (JSON.parse(line) as [number, string, string])[2]).join("");
  const cases = output.split("\r\n").filter((line) => line.startsWith("ok  "));
  const names = cases.map((line) => line.split(/ {2,}/)[1] ?? "");
  const folder = join(root, "examples/demo/src");
  const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  expect(names.filter((name) => !sources.some((text) => text.includes(`"${name}"`)))).toEqual([]);
  expect(output).toContain(`\r\n${cases.length} of ${cases.length} as expected\r\n`);
});

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
        return listen.apply(this, args);
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
    // npm links no program of a workspace that is built after the installation.
    const commands = fileText(`site/snippets/${file}`, { region })
      .replaceAll(":3000/", `:${this.#port}/`)
      .replaceAll("npx countersign ", `${process.execPath} ${join(root, "packages/tools/cli/dist/cli.js")} `);
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
  ["quick-start", "module", "examples/snippets/src/guide/quick-start.ts"],
  ["hono-nextjs", "module", "examples/hono/src/payouts.ts"],
  ["fastify", "module", "examples/fastify/src/payouts.ts"],
  ["express-4-commonjs", "commonjs", "examples/express4-commonjs/src/payouts.js"],
] as const)("the server of the page %s", (page, type, file) => {
  const reader = new Reader(type);
  beforeAll(async () => {
    await reader.shell("quick-start.sh", "keys");
    await reader.start(file);
  }, 60_000);
  afterAll(async () => reader.end());

  test("is shown there", () => {
    expect(read(`site/pages/guide/${page}.md`)).toContain(`\`\`\`js file=${file}\n`);
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
  }, 60_000);
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
  }, 60_000);
});

describe.each([
  [
    "site/pages/guide/other-webhooks.md",
    "examples/snippets/src/guide/github-webhook.ts",
    "github-webhook.sh",
    [200, 200, 401],
  ],
  ["docs/idempotency-key.md", "examples/snippets/src/guide/charges.ts", "charges.sh", [201, 201, 422]],
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
  }, 60_000);
});

// The test that the page shows, with jest in the place of vitest, as the page says.
const cache = join(root, "node_modules/.cache/countersign/guide");
mkdirSync(cache, { recursive: true });
const file = join(cache, "payout.mjs");
const shown = read("site/snippets/payout.test.mjs");
writeFileSync(
  file,
  shown
    .replace('from "vitest"', 'from "@jest/globals"')
    .replace('"./test-app.js"', JSON.stringify(join(root, "examples/snippets/dist/guide/test-app.js"))),
);
await import(file);
