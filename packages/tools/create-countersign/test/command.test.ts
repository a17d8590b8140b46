import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "@jest/globals";
import { testFolder } from "@countersign/test-support/runs/after-test.ts";
import { manifest, run } from "./workbench.ts";

const place = "case";
let cwd: string;
beforeEach(() => {
  cwd = testFolder();
  mkdirSync(at());
});

const at = (...names: string[]): string => path.join(cwd, place, ...names);
const filesIn = (folder: string): string[] => readdirSync(folder).toSorted();
const named = (folder: string): unknown =>
  JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
const project = [
  ".env.example",
  ".gitignore",
  "AGENTS.md",
  "README.md",
  "package.json",
  "scripts",
  "src",
  "test",
  "tsconfig.json",
];

describe("flags", () => {
  test("that are left out are Express, SQLite and a folder of its name", () => {
    const { code, out, error } = run([], { cwd: at() });
    expect({ code, error }).toEqual({ code: 0, error: "" });
    expect(out).toContain("(Express, SQLite, TypeScript)");
    const { dependencies } = named(at("payout-platform")) as { dependencies: object };
    expect(dependencies).toMatchObject({
      express: expect.anything(),
      "@countersign/store-sql": expect.anything(),
    });
  });

  test("write what they say, and the next steps, without a question", () => {
    const flags = ["--framework", "fastify", "--store", "postgres", "--name", "@a/b"];
    const { code, out, error } = run([`${place}/new`, ...flags], { cwd });
    expect({ code, error }).toEqual({ code: 0, error: "" });
    expect(filesIn(at("new"))).toEqual(project);
    expect(named(at("new"))).toMatchObject({ name: "@a/b", dependencies: { fastify: expect.anything() } });
    for (const step of [
      `cd ${place}/new`,
      "npm install",
      "export DATABASE_URL=",
      "npm test",
      "npm run keys",
    ]) {
      expect(out).toContain(`\n  ${step}`);
    }
  });

  test.each([
    ["unknown", ["--framwork", "express"], /Unknown option '--framwork'; --help lists the flags/],
    ["of another framework", ["--framework", "koa"], /--framework is one of express, fastify, got "koa"/],
    ["of another store", ["--store=mysql"], /--store is one of sqlite, postgres, mariadb, got "mysql"/],
    ["of what every object has", ["--store", "constructor"], /--store is one of/],
    ["without a value", ["--store"], /argument missing; --help/],
    ["with a value too many", ["--install=no"], /does not take an argument; --help/],
    ["of two folders", ["a", "b"], /one folder can be written at a time, got a b/],
    ["of no folder", [""], /the folder has no name/],
    ["of a folder with ESC", ["a\u001B]0;x\u0007"], /control characters: a\\u\{1b\}\]0;x\\u\{7\}$/m],
    ["of a folder that turns the line around", ["a\u202Eb"], /control characters: a\\u\{202e\}b$/m],
    ["of a folder with a line end", ["a\nb"], /control characters: a\\u\{a\}b$/m],
    ["of a name with ESC", ["--name", "\u001B[2J"], /--name: npm does not take/],
    ["name with a capital letter", ["--name", "Platform"], /--name: npm does not take "Platform": .*capital/],
    ["name of Node's own", ["--name", "http"], /--name: npm does not take "http": .*core module/],
  ])("refuse one that is %s, with 2, and write nothing", (_name, args, message) => {
    const { code, out, error } = run(args, { cwd: at() });
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(error).toMatch(message);
    expect(error).toMatch(/^error: [^\n\p{C}]+\n$/u);
    expect(filesIn(at())).toEqual([]);
  });

  test("--help tells all of them within 80 columns, --version the version", () => {
    const { code, out } = run(["--help", "--store", "postgres"], { cwd });
    expect(code).toBe(0);
    for (const flag of ["framework", "store", "name", "install", "help", "version"]) {
      expect(out).toMatch(new RegExp(`^ .*--${flag} `, "m"));
    }
    expect(out.split("\n").filter((line) => line.length > 80)).toEqual([]);
    expect(run(["-v"], { cwd })).toMatchObject({ code: 0, out: `${manifest.version}\n` });
  });

  test("npm install runs only with --install, and decides the exit code", () => {
    const installed: string[] = [];
    const install = (result: boolean) => (folder: string) => installed.push(folder) > 0 && result;
    const good = run(["good", "--install"], { cwd: at(), install: install(true) });
    const bad = run(["bad", "--install"], { cwd: at(), install: install(false) });
    expect(installed).toEqual([at("good"), at("bad")]);
    expect([good.code, bad.code]).toEqual([0, 1]);
    expect(good.out).not.toContain("npm install");
    expect(bad.out).toContain("\n  npm install\n");
  });
});

describe("the name of the package", () => {
  test.each([
    ["payouts", "payouts"],
    ["My Platform", "my-platform"],
    ["Zahlungen für Gäste", "zahlungen-fur-gaste"],
    [".hidden_", "hidden"],
    ["node_modules", "payout-platform"],
    ["支付", "payout-platform"],
    ["a".repeat(230), "a".repeat(200)],
  ])("in the folder %s is %s", (folder, name) => {
    run([`${place}/${folder}`], { cwd });
    expect(named(at(folder))).toMatchObject({ name });
  });
});

describe("the first of the next steps", () => {
  const hostile = 'it\'s $(touch ran) `touch ran` "$HOME" \\ %PATH% & !x';

  test.each(["plain-folder.1", "two words", hostile, "'", "''", "-", "-P", "~", "*", "#a", "für Gäste"])(
    "leads a shell into the folder %s, and runs nothing",
    (name) => {
      const { code, out } = run(["--", name], { cwd: at() });
      expect(code).toBe(0);
      const [step] = /^ {2}cd .*$/m.exec(out) ?? [];
      // What it prints is where it has come to; a shell of POSIX, with nothing of its user's.
      const shown = execFileSync("/bin/sh", ["-c", `${step} && pwd`], { cwd: at(), encoding: "utf8" });
      expect(shown).toBe(`${realpathSync(at())}/${name}\n`);
      expect(filesIn(at())).toEqual([name]);
    },
  );

  test.each([
    ["plain-folder", "cd plain-folder"],
    ["two words", 'cd "two words"'],
    ["für Gäste (1)", 'cd "für Gäste (1)"'],
    ["100%PATH%", "(go to the folder 100%PATH%)"],
    ["$(calc)", "(go to the folder $(calc))"],
    ["a\u201D; calc", "(go to the folder a\u201D; calc)"],
    ["a & calc", "(go to the folder a & calc)"],
  ])("is one that cmd.exe and PowerShell read alike: %s", (name, step) => {
    const { out } = run([name], { cwd: at(), platform: "win32" });
    expect(out).toContain(`\n  ${step}\n`);
  });

  test("steers no terminal, whatever the folder is called that it is typed in", () => {
    const hostileCwd = at("\u001B[2J\u202E");
    mkdirSync(hostileCwd);
    const { code, out } = run(["new"], { cwd: hostileCwd });
    expect(code).toBe(0);
    expect(out).toContain(String.raw`\u{1b}[2J\u{202e}/new`);
    expect(out).not.toMatch(/[^\P{C}\n]/u);
    const again = run(["new"], { cwd: hostileCwd });
    expect(again.code).toBe(1);
    expect(again.error).not.toMatch(/[^\P{C}\n]/u);
  });
});

describe("the folder", () => {
  test("is refused with 1 when it is not empty, and says what is there", () => {
    writeFileSync(at("notes.txt"), "mine");
    const { code, out, error } = run([place], { cwd });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(error).toContain(`${at()} is not empty:\n  notes.txt\nNothing was written`);
    expect(filesIn(at())).toEqual(["notes.txt"]);
    expect(readFileSync(at("notes.txt"), "utf8")).toBe("mine");
  });

  test("shows at most ten of what is there, and no control characters", () => {
    for (let index = 0; index < 12; index += 1)
      writeFileSync(at(`${String(index).padStart(2, "0")}\u001B[2J`), "");
    const { error } = run([place], { cwd });
    expect(error).toContain("  09\\u001b[2J\n  and 2 more\n");
    expect(error).not.toContain("\u001B");
  });

  test("is refused when it is a file, or a link to nowhere", () => {
    writeFileSync(at("file"), "");
    symlinkSync(at("nowhere"), at("link"));
    for (const name of ["file", "link", "file/below"]) {
      expect(run([`${place}/${name}`], { cwd })).toMatchObject({ code: 1, out: "" });
    }
    expect(filesIn(at())).toEqual(["file", "link"]);
  });

  test("may be the empty one that the shell is in", () => {
    const { code, out } = run(["."], { cwd: at() });
    expect(code).toBe(0);
    expect(filesIn(at())).toEqual(project);
    expect(named(at())).toMatchObject({ name: place });
    expect(out).not.toMatch(/^ {2}cd /m);
  });

  test("may hold a .git, which stays", () => {
    mkdirSync(at(".git"));
    writeFileSync(at(".git", "HEAD"), "ref: refs/heads/main\n");
    expect(run([place], { cwd })).toMatchObject({ code: 0 });
    expect(filesIn(at())).toEqual(project.toSpliced(1, 0, ".git"));
    expect(readFileSync(at(".git", "HEAD"), "utf8")).toBe("ref: refs/heads/main\n");
  });

  test("is made together with those above it, and quoted in the next steps", () => {
    const { code, out } = run([`${place}/a/b c`], { cwd });
    expect(code).toBe(0);
    expect(out).toContain(`\n  cd '${place}/a/b c'\n`);
    expect(filesIn(at("a"))).toEqual(["b c"]);
  });
});
