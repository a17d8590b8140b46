import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import { expectOneLine, expectRun, moduleIn, type Run, run, spawnCli, temporaryFolder } from "./cli-bench.ts";
import { platformDatabase, methodsOf } from "./operator-bench.ts";

const folder = temporaryFolder();

const moduleOf = (text: string, name = "store.mjs"): string => moduleIn(folder, text, name);

// What the modules here export: they are loaded in this process.
const shared = globalThis as { storeOfTest?: unknown; closedOfTest?: string[] };
let store: IdempotencyStore;
let nowMs: number;

beforeEach(() => {
  nowMs = 0;
  shared.closedOfTest = [];
  const memory = memoryIdempotencyStore({ now: () => nowMs, retentionMs: 1000 });
  store = {
    ...methodsOf(memory),
    close: () => void shared.closedOfTest?.push("store"),
  };
  shared.storeOfTest = store;
});

async function claim(key: string): Promise<void> {
  await store.claim(key, { token: key, fingerprint: "f", leaseMs: 60_000, recovery: "rerun" });
}

const exportsStore = "export const createStore = async () => globalThis.storeOfTest;";

function runOn(file: string, ...args: readonly string[]): Promise<Run> {
  return run([...args, "--store-module", file]);
}

describe.each([
  ["that gives a promise", exportsStore],
  ["that gives the store", "export function createStore() { return globalThis.storeOfTest; }"],
])("--store-module with a createStore() %s", (_name, text) => {
  test("lists, decides about and prunes the keys of the store, and closes it", async () => {
    for (const key of ["held-1", "held-2", "done"]) await claim(key);
    for (const key of ["held-1", "held-2"]) await store.hold(key, key, "the bank timed out");
    await store.complete("done", "done");
    const file = moduleOf(text);

    expect(await runOn(file, "keys", "list", "--state", "done")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^done +done .*processed$/m),
      err: "",
    });
    expectRun(await runOn(file, "keys", "held"), 1, {
      out: /^held-1\n.*\n {2}why +the bank timed out\n[\s\S]*^held-2$/m,
    });
    const resolved = await runOn(file, "keys", "resolve", "held-1", "--as", "done", "--yes");
    expect(resolved).toMatchObject({ code: 0, err: "" });
    expect(resolved.out).toMatch(/^store +module:.*store\.mjs$/m);
    expect(resolved.out).toContain("As long as the store remembers the key, every retry is answered 409");
    expect(await store.read("held-1")).toMatchObject({ state: "done" });
    await runOn(file, "keys", "resolve", "held-2", "--as", "released", "--yes");
    expect(await store.read("held-2")).toBeUndefined();
    nowMs = 2000;
    expect(await runOn(file, "prune")).toEqual({
      code: 0,
      out: `removed 2 done keys from module:${file}\n`,
      err: "",
    });
    expect(await runOn(file, "prune", "--json")).toMatchObject({
      out: '{"keys":0,"nonces":0,"tasks":0}\n',
    });
    expect(shared.closedOfTest).toEqual(Array.from({ length: 6 }, () => "store"));
  });
});

test("close() of the module is called after that of the store, also when the store is none", async () => {
  const closes = 'export const close = async () => void globalThis.closedOfTest.push("module");';
  await runOn(moduleOf(`${exportsStore}\n${closes}`), "keys", "held");
  expect(shared.closedOfTest).toEqual(["store", "module"]);
  shared.closedOfTest = [];
  expect(
    await runOn(moduleOf(`export const createStore = () => ({});\n${closes}`), "keys", "held"),
  ).toMatchObject({
    code: 2,
  });
  expect(shared.closedOfTest).toEqual(["module"]);
});

test("a store that answers null for what is absent is understood", async () => {
  const own = { ...store, read: () => null, list: () => ({ entries: [], cursor: null }) };
  shared.storeOfTest = own;
  const file = moduleOf(exportsStore);
  expect(await runOn(file, "keys", "held")).toMatchObject({ code: 0, out: /no key waits/ });
  expectRun(await runOn(file, "keys", "resolve", "key", "--as", "done", "--yes"), 1, {
    err: /^error: key: unknown in module:/,
  });
});

test("a store of before there were decisions resolves, shows, and says why it cannot reopen", async () => {
  await claim("key");
  await store.hold("key", "key", "why");
  const { reopen: _reopen, readReleased: _readReleased, ...own } = store;
  shared.storeOfTest = {
    ...own,
    async read(key: string) {
      const { decision: _decision, ...record } = Object(await own.read(key));
      return "state" in record ? record : undefined;
    },
  };
  const file = moduleOf(exportsStore);
  const resolved = await runOn(file, "keys", "resolve", "key", "--as", "done", "--yes", "--by", "anna");
  expect(resolved.out).toMatch(/^\S+Z key at fence \d+: was held \(why\), is done, by anna$/m);
  expect((await runOn(file, "keys", "show", "key")).out).toMatch(/^state +done: processed$/m);
  expect(await runOn(file, "keys", "reopen", "key")).toMatchObject({ code: 1 });
  shared.storeOfTest = { ...store, reopen: undefined };
  expect(await runOn(file, "keys", "reopen", "key")).toEqual({
    code: 2,
    out: "",
    err: `error: --store-module: the store of module:${file} has no reopen(), so no decision can be taken back\n`,
  });
});

test("a store without list() can resolve, and says why it cannot list", async () => {
  await claim("key");
  await store.hold("key", "key", "why");
  const { list: _list, ...own } = store;
  shared.storeOfTest = own;
  const file = moduleOf(exportsStore);
  for (const command of [["held"], ["list", "--state", "running"]]) {
    expect(await runOn(file, "keys", ...command)).toEqual({
      code: 2,
      out: "",
      err: `error: --store-module: the store of module:${file} has no list(), so its keys cannot be listed\n`,
    });
  }
  expect(await runOn(file, "keys", "resolve", "key", "--as", "done", "--yes")).toMatchObject({ code: 0 });
});

describe("one line on stderr says of", () => {
  const commands: readonly (readonly string[])[] = [["keys", "held"], ["prune"]];
  const ends = async (file: string, code: number, line: RegExp): Promise<void> => {
    for (const command of commands) {
      const ended = await runOn(file, ...command);
      expect(ended).toMatchObject({ code, out: "" });
      expect(ended.err).toMatch(line);
      expect(ended.err).toMatch(/^error: [^\n]*\n$/);
    }
  };

  test("a file that is missing, and of a folder, that it is no file", async () => {
    await ends(join(folder, "typo.js"), 2, /--store-module: module:\S+typo\.js does not exist/);
    const named = join(folder, "folder.js");
    mkdirSync(named);
    await ends(named, 2, /--store-module: module:\S+folder\.js is no file/);
  });

  test.each<[string, string, RegExp]>([
    ["no export", "", /exports no function createStore\(\)/],
    ["another export", "export const createStore = {};", /exports no function createStore\(\)/],
    [
      "an object that is no store",
      "export const createStore = () => ({ read() {} });",
      /: createStore\(\) gave no idempotency store: it has no resolve\(\), prune\(\), close\(\)/,
    ],
    ["text", 'export const createStore = () => "sqlite:p.db";', /gave no idempotency store/],
    ["nothing", "export const createStore = () => undefined;", /gave no idempotency store/],
  ])("a module with %s what it lacks", async (_name, text, line) => {
    await ends(moduleOf(text), 2, line);
  });

  test("a createStore() that fails what it said", async () => {
    const failing = (body: string) => moduleOf(`export function createStore() { ${body} }`);
    await ends(failing('throw new Error("no\\n  such \\u001b table")'), 1, /: no such \\u\{1b\} table$/m);
    await ends(failing("undefined.x"), 1, /: Cannot read properties of undefined/);
    const refused = 'throw Object.assign(new Error("x"), { code: "ECONNREFUSED" })';
    await ends(failing(refused), 3, /cannot be reached: the connection was refused/);
  });

  test("a step of the store that fails what it said, and closes the store", async () => {
    shared.storeOfTest = {
      ...store,
      list: () => Promise.reject(new TypeError("no column held")),
      prune: () => Promise.reject(new TypeError("no column held")),
    };
    await ends(moduleOf(exportsStore), 1, /^error: module:\S+: no column held$/m);
    expect(shared.closedOfTest).toEqual(["store", "store"]);
  });

  test.each<[string, readonly string[], RegExp]>([
    [
      "a URL as well",
      ["--store-url", "sqlite:p.db"],
      /'--store-module <file>' cannot be used with option '--store-url/,
    ],
    ["a schema", ["--schema", "s"], /--schema: means nothing for module:/],
    ["a table", ["--table", "t"], /--table: means nothing for module:/],
    ["a prefix", ["--prefix", "p"], /--prefix: means nothing for module:/],
    ["a retention", ["--retention-days", "30"], /^error: --retention-days: means nothing for module:/],
  ])("%s that it does not go with a module", async (_name, flags, line) => {
    const resolve = ["keys", "resolve", "key", "--as", "done", "--yes", ...flags];
    expectOneLine(await runOn(moduleOf(exportsStore), ...resolve), 2, line);
  });
});

describe("the built command line", () => {
  const root = fileURLToPath(new URL("../../../../node_modules", import.meta.url));
  const spawned = (cwd: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    spawnCli(args, { cwd, env });

  test("runs the module of the reference, from the folder of whoever calls", async () => {
    const page = new URL("../../../../site/snippets/store-module.js", import.meta.url);
    const text = readFileSync(page, "utf8");
    const cwd = mkdtempSync(join(folder, "platform-"));
    symlinkSync(root, join(cwd, "node_modules"));
    writeFileSync(join(cwd, "package.json"), '{ "type": "module" }');
    writeFileSync(join(cwd, "store.js"), text);
    platformDatabase(join(cwd, "platform.db"));
    const held = ["keys", "held", "--store-module", "./store.js"];
    expect(await spawned(cwd, held)).toEqual({
      code: 1,
      out: expect.stringMatching(/^key\n[\s\S]* {2}why +why$/m),
      err: "",
    });
    expectRun(await spawned(cwd, held, { STORE_URL: "sqlite:platform.db" }), 2, { err: /'STORE_URL'/ });
  });

  test("takes a CommonJS module, and says what it cannot load", async () => {
    const object = "{ read() {}, resolve() {}, prune: () => 0, close() {}, list: () => ({ entries: [] }) }";
    const common = moduleOf(`exports.createStore = () => (${object});`, "store.cjs");
    expect(await spawned(folder, ["keys", "held", "--store-module", common])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^no key waits for a decision in module:/),
      err: "",
    });
    for (const [text, line] of [
      ["export const = 1;", /cannot be loaded: SyntaxError: /],
      ['import "mysql2-of-nobody";', /cannot be loaded: .*Cannot find package 'mysql2-of-nobody'/],
    ] as const) {
      const ended = await spawned(folder, ["keys", "held", "--store-module", moduleOf(text)]);
      expect(ended).toMatchObject({ code: 2, out: "" });
      expect(ended.err).toMatch(line);
      expect(ended.err).toMatch(/^error: --store-module: module:[^\n]*\n$/);
    }
  });

  test("waits for no module for ever", async () => {
    const file = moduleOf(
      "export const createStore = () => new Promise(() => setInterval(() => {}, 1000).unref());",
    );
    const ended = await spawned(folder, ["keys", "held", "--store-module", file]);
    expect(ended).toMatchObject({ code: 3, err: expect.stringMatching(/no answer within 5000 ms/) });
  });
});
