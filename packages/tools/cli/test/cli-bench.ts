import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect } from "@jest/globals";
import type { Ask } from "../src/command-io.ts";
import { runCli } from "../src/program.ts";
import { startPlatform, type TestPlatform } from "../../devtools/test/sandbox/platform.ts";

export interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** The words of a command line; a text holds them between spaces. */
export type Args = string | readonly string[];

export function wordsOf(args: Args): readonly string[] {
  return typeof args === "string" ? args.split(" ").filter(Boolean) : args;
}

export async function run(
  args: Args,
  {
    colours = false,
    columns,
    ask = isUnasked(wordsOf(args)) ? () => Promise.resolve(undefined) : undefined,
    login = () => "the-login",
  }: {
    colours?: boolean;
    columns?: number;
    ask?: Ask;
    login?: () => string | undefined;
  } = {},
): Promise<Run> {
  let [out, err] = ["", ""];
  const code = await runCli(wordsOf(args), {
    writeOut: (text) => (out += text),
    writeError: (text) => (err += text),
    colours,
    columns,
    ask,
    login,
    clock: () => Math.floor(Date.now() / 1000),
  });
  return { code, out, err };
}

/** At a terminal `resolve --yes` asks for no note and no fence. */
function isUnasked(args: readonly string[]): boolean {
  return args.includes("resolve") && args.includes("--yes");
}

/** Expects a run that ended with one line on stderr, and wrote nothing else. */
export function expectOneLine({ code, out, err }: Run, expected: number, line: RegExp): void {
  expect({ code, out }).toEqual({ code: expected, out: "" });
  expect(err).toMatch(line);
  expect(err).toMatch(/^error: [^\n]*\n$/);
}

/** Expects an exit code, and texts on stdout or stderr. */
export function expectRun(ended: Run, code: number, texts: Partial<Record<"out" | "err", RegExp>>): void {
  const matching = Object.entries(texts).map(([name, text]) => [name, expect.stringMatching(text)]);
  expect(ended).toMatchObject({ code, ...Object.fromEntries(matching) });
}

/** A folder that is removed after the tests of a file. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "countersign-folder-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The built command line. */
export const builtCli: string = fileURLToPath(new URL("../dist/cli.js", import.meta.url));

/** Writes a module into a folder of its own below `folder`, since a process loads a file once; gives its path. */
export function moduleIn(folder: string, text: string, name: string): string {
  const file = join(mkdtempSync(join(folder, "module-")), name);
  writeFileSync(file, text);
  return file;
}

/** A directory with a key named `test`, and a platform that knows it. */
export class CliBench {
  readonly directory: string = mkdtempSync(join(tmpdir(), "countersign-cli-"));
  readonly key: string = join(this.directory, "test.private.pem");
  private running: TestPlatform | undefined;

  get platform(): TestPlatform {
    if (this.running === undefined) throw new Error("the platform was not started");
    return this.running;
  }

  async open(): Promise<void> {
    const { code, err } = await run(["keygen", "--out", this.directory, "--keyid", "test"]);
    if (code !== 0) throw new Error(err);
    const keys = JSON.parse(readFileSync(join(this.directory, "keys.json"), "utf8")) as Record<
      string,
      string
    >;
    this.running = await startPlatform(keys);
  }

  async close(): Promise<void> {
    await this.platform.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Arguments of a good payout, and what is to be added or replaced. */
  payout(...args: readonly string[]): string[] {
    return ["payout", "--url", this.platform.url, "--key", this.key, "--keyid", "test", ...args];
  }

  file(name: string, text: string): string {
    const path = join(this.directory, name);
    writeFileSync(path, text);
    return path;
  }

  /** Runs the built command line as a process of its own. */
  spawned(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
    return spawnCli(args, { env, cwd: this.directory });
  }
}

/** Runs the built command line, or another one, as a process of its own. */
export function spawnCli(
  args: readonly string[],
  {
    env,
    cwd,
    cli = builtCli,
    input,
  }: {
    env: Readonly<Record<string, string>>;
    cwd?: string | undefined;
    cli?: string | undefined;
    /** Of standard input. */
    input?: string | Buffer;
  },
): Promise<Run> {
  // jest sets FORCE_COLOR for its workers; Node warns when both are set.
  const colours = { FORCE_COLOR: undefined, NO_COLOR: undefined };
  const child = spawn(process.execPath, [cli, ...args], { env: { ...process.env, ...colours, ...env }, cwd });
  if (input !== undefined) child.stdin.end(input);
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out, err })));
}

/** The words of a line as a shell reads them, for the quotes that the command writes. */
export function shellWords(line: string): string[] {
  const words = line.match(/(?:'[^']*'|\\'|[^\s'])+/g) ?? [];
  return words.map((word) =>
    word.replaceAll(/'([^']*)'|\\(')/g, (_all, text?: string, quote?: string) => text ?? quote ?? ""),
  );
}
