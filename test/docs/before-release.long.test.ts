// What pages and README say until npm has the packages: typed as a reader would, in folders outside of the clone.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { fileText } from "../../site/scripts/file-text.mjs";

const run = promisify(execFile);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const work = mkdtempSync(join(tmpdir(), "countersign-packed-"));
let create = "";
let installed = new Map<string, string>();

async function shell(commands: string, cwd: string): Promise<string> {
  const { stdout } = await run("bash", ["-e", "-c", commands], { cwd, maxBuffer: 10_000_000 });
  return stdout;
}

async function freePort(): Promise<string> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  await new Promise((closed) => probe.close(closed));
  return String(port);
}

beforeAll(async () => {
  const told = await shell(`npm run --silent pack -- ${join(work, "packages")}`, root);
  const blocks = told.matchAll(/((?:^\S.*\n+)*)((?:^ {2}\S.*\n?)+)/gm);
  const read = [...blocks].map(
    ([, above = "", block = ""]) => [above, block.replaceAll(/^ {2}/gm, "").trimEnd()] as const,
  );
  create = read[0]?.[1] ?? "";
  installed = new Map(
    read.slice(1).flatMap(([above, line]) =>
      above
        .trim()
        .split("\n")
        .map((page) => [page, line]),
    ),
  );
}, 300_000);
afterAll(() => rmSync(work, { recursive: true, force: true }));

test("a platform is created, installed and passes its tests", async () => {
  expect(await shell(`${create}\nnpm test`, work)).toMatch(/^(?:#|ℹ) pass [1-9]\d*$/m);
}, 300_000);

test("the README's code is installed and started, and pays once", async () => {
  const folder = join(work, "by-hand");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const [code = ""] = /(?<=```ts\n)[^]*?(?=```)/.exec(readme) ?? [];
  const [keygen = ""] = /^npx countersign keygen .*$/m.exec(readme) ?? [];
  await shell(`${installed.get("README.md")}\n${keygen}`, folder);
  // What the README installs, what that needs, and nothing else of ours.
  const modules = readdirSync(join(folder, "node_modules"));
  expect(modules).toEqual(expect.arrayContaining(["countersign", "express", "libsql"]));
  expect(readdirSync(join(folder, "node_modules/@countersign"))).not.toContain("store-redis");
  const port = await freePort();
  writeFileSync(join(folder, "server.mjs"), code.replace("3000", port));
  const server = spawn(process.execPath, ["server.mjs"], { cwd: folder, stdio: "ignore" });
  try {
    const pay = fileText("site/snippets/quick-start.sh", { region: "pay" }).trim().replace("3000", port);
    const first = `${pay} --idempotency-key first.from.to`;
    // The server may need a moment to listen.
    const paid = await shell(`for _ in $(seq 60); do ${first} && exit; sleep 1; done; exit 1`, folder);
    expect(paid).toContain("200 OK, expected 2xx");
    await shell(`${first} --expect 409`, folder);
  } finally {
    const ended = once(server, "exit");
    if (server.kill()) await ended;
  }
}, 300_000);
