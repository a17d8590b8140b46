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
import { table as guardOptions } from "../../packages/idempotency-guard/dist/options.js";
import { plain } from "./readme-options.ts";

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

test.each([
  ["docs/keys.md", "ts", "examples/snippets/src/guide/keys-of-url.ts"],
  ["docs/using.md", "js", "site/snippets/jest.config.js"],
])("the code of %s is that of a file", (page, language, file) => {
  const blocks = [...read(page).matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, "g"))];
  const codeOf = (text: string): string => text.replace(/^\/\/.*\n/, "");
  expect(blocks.map(([, code = ""]) => codeOf(code))).toContain(codeOf(read(file)));
});

test("the pages that the README leads to are there", () => {
  const { homepage } = JSON.parse(read("package.json")) as { homepage: string };
  const links = [...read("README.md").matchAll(/\]\((https:\/\/[^)]+)\.html\)/g)].map(
    ([, link = ""]) => link,
  );
  const made = new Set(["guide/idempotency-key", "guide/keys", "reference/codes"]);
  const lost = links.filter((link) => {
    const page = link.slice(homepage.length);
    return !link.startsWith(homepage) || !(made.has(page) || pages.includes(`${page}.md`));
  });
  expect(links.length).toBeGreaterThan(10);
  expect(lost).toEqual([]);
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
  const cases = output.split("\r\n").filter((line) => line.endsWith(" yes"));
  const names = cases.map((line) => line.split(/ {2,}/)[0] ?? "");
  const folder = join(root, "examples/demo/src");
  const sources = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  expect(names.filter((name) => !sources.some((text) => text.includes(`"${name}"`)))).toEqual([]);
  expect(output).toContain(`\r\n${cases.length} of ${cases.length} as expected\r\n`);
});

describe("the quick start", () => {
  let folder = "";
  let platform: ReturnType<typeof spawn> | undefined;
  let port = "";

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "countersign-quick-start-"));
    // In the place of its first step, which installs what is not published here.
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    cpSync(join(root, "examples/snippets/src/guide/quick-start.ts"), join(folder, "server.js"));
    await shell("keys");
    const env = { ...process.env, PORT: "0" };
    platform = spawn(process.execPath, ["--input-type=module", "--eval", listening], { cwd: folder, env });
    port = await new Promise((hear, fail) => {
      platform?.once("exit", (code) => fail(new Error(`server.js ended with ${code}`)));
      platform?.stdout?.setEncoding("utf8").on("data", (text: string) => {
        const [, found] = /PORT=(\d+)/.exec(text) ?? [];
        if (found !== undefined) hear(found);
      });
    });
  }, 60_000);

  afterAll(async () => {
    if (platform?.kill() === true) await once(platform, "exit");
    rmSync(folder, { recursive: true, force: true });
  });

  // The page's file as it is; the port that the system chose is told beside it.
  const listening = `
    import { Server } from "node:net";
    const { listen } = Server.prototype;
    Server.prototype.listen = function (...args) {
      this.once("listening", () => console.log("PORT=" + this.address().port));
      return listen.apply(this, args);
    };
    await import("./server.js");
  `;

  /** The commands of the page, one after the other; rejects when one fails. */
  async function shell(region: string): Promise<string> {
    // npm links no program of a workspace that is built after the installation.
    const commands = fileText("site/snippets/quick-start.sh", { region })
      .replaceAll(":3000/", `:${port}/`)
      .replaceAll("npx countersign ", `${process.execPath} ${join(root, "packages/cli/dist/cli.js")} `);
    const { stdout } = await run("bash", ["-e", "-c", commands], { cwd: folder });
    return stdout;
  }

  test("pays", async () => {
    expect(await shell("pay")).toContain("200 OK, expected 2xx");
  });

  test("refuses what must not pay, and has paid each key once", async () => {
    const told = await shell("refuse");
    expect(told.match(/^\S+: as expected$/gm)).toHaveLength(3);
    expect((await shell("look")).match(/ done /g)).toHaveLength(3);
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
