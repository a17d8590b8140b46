import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Command } from "commander";
import { askAtTerminal, type Ask, type CommandIo } from "../src/command-io.ts";
import { createProgram } from "../src/program.ts";
import { tableText } from "../src/table.ts";
import { CliBench, run } from "./cli-bench.ts";

const bench = new CliBench();
beforeAll(() => bench.open());
afterAll(() => bench.close());

const silent: CommandIo = { writeOut: () => {}, writeError: () => {}, colours: false, clock: () => 0 };

/** The words of every command, `countersign` itself among them. */
function pathsOf(command: Command, path: readonly string[] = []): (readonly string[])[] {
  return [
    path,
    ...command.commands.flatMap((subcommand) => pathsOf(subcommand, [...path, subcommand.name()])),
  ];
}

const paths = pathsOf(createProgram(silent, () => {}));

describe("help", () => {
  test("and the version are printed; a bare countersign shows the usage as an error", async () => {
    expect(await run("--version")).toMatchObject({ code: 0, out: `${version}\n`, err: "" });
    const usage = expect.stringMatching(/^Usage: countersign/);
    expect(await run([])).toMatchObject({ code: 2, out: "", err: usage });
  });

  test.each(paths.map((path) => ({ name: path.join(" ") || "countersign", path })))(
    "of $name stands within 80 columns, and tells the exit codes",
    async ({ path }) => {
      const { code, out } = await run([...path, "--help"]);
      const wide = out.split("\n").filter((line) => line.length > 80);
      expect({ code, wide }).toEqual({ code: 0, wide: [] });
      if (!isGroup(path)) expect(out).toMatch(/^Exit codes/m);
    },
  );

  function isGroup(path: readonly string[]): boolean {
    return path.length > 0 && paths.some((other) => other.join(" ").startsWith(`${path.join(" ")} `));
  }

  test("has --json on every command that does something", () => {
    const program = createProgram(silent, () => {});
    const without = leavesOf(program).filter(
      (command) => !command.options.some(({ long }) => long === "--json"),
    );
    expect(without.map((command) => command.name())).toEqual([]);
  });

  test("names the environment variable of every option that has one", async () => {
    for (const path of paths) {
      const { out } = await run([...path, "--help"]);
      const command = path.reduce(
        (found, name) => found.commands.find((one) => one.name() === name) ?? found,
        createProgram(silent, () => {}),
      );
      for (const { envVar } of command.options) {
        if (envVar !== undefined) expect(out.replaceAll(/\s+/g, " ")).toContain(`(env: ${envVar})`);
      }
    }
  });

  function leavesOf(command: Command): Command[] {
    return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
  }
});

describe("what was mistyped", () => {
  test.each([
    [["payuot"], "error: unknown command 'payuot' (did you mean payout?)\n"],
    [["held"], "error: unknown command 'held' (did you mean keys held?)\n"],
    [["keys", "hled"], "error: unknown command 'hled' (did you mean held?)\n"],
    [["keys", "held", "--jsn"], "error: unknown option '--jsn' (did you mean --json?)\n"],
    [["keys", "held", "--zzzzzz"], "error: unknown option '--zzzzzz'; see countersign keys held --help\n"],
    [
      ["trigger", "x", "--url", "http://127.0.0.1:1"],
      "error: required option '--api-key <key>' not specified, nor COUNTERSIGN_API_KEY; see countersign trigger --help\n",
    ],
    [["keygen", "\u001B[2J"], /^error: too many arguments.*; see countersign keygen --help\n$/],
    [["\u001B[2J"], /^error: unknown command '\\u\{1b\}\[2J'/],
  ])("%p is answered with what was meant", async (args, line) => {
    const { code, out, err } = await run(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    if (typeof line === "string") expect(err).toBe(line);
    else expect(err).toMatch(line);
    expect(err).not.toContain("\u001B");
  });
});

// No loopback address by its text, and nothing listens there.
const otherHost = "http://0.0.0.0:1/";

describe("plain http to another host", () => {
  const apiKey = ["--api-key", "test-api-key"];
  const rows: readonly (readonly [command: string, args: () => readonly string[], unanswered: number])[] = [
    ["payout", () => ["--key", bench.key, "--keyid", "test"], 3],
    ["webhook", () => ["--username", "u", "--password", "p", "--secret", "s"], 3],
    ["trigger", () => ["buyer.status_changed", ...apiKey], 3],
    ["doctor", () => [], 1],
  ];

  test.each(rows)("asks for --allow-http in %s", async (command, args, unanswered) => {
    const typed = [...command.split(" "), ...args(), "--url", otherHost];
    const { code, out, err } = await run(typed);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(
      /^error: --url: plain http shows everything that is sent to the network; .*add --allow-http\n$/,
    );
    const allowed = await run([...typed, "--allow-http"]);
    expect(allowed).toMatchObject({ code: unanswered, err: expect.not.stringContaining("plain http") });
  });

  test("is asked about in every command that takes a URL", () => {
    const root = createProgram(silent, () => {});
    const commands = paths.map((path) => ({
      name: path.join(" "),
      command: path.reduce((found, word) => found.commands.find((one) => one.name() === word) ?? found, root),
    }));
    const withFlag = (flag: RegExp): ReadonlySet<string> =>
      new Set(
        commands
          .filter(({ command }) => command.options.some(({ long }) => flag.test(long ?? "")))
          .map(({ name }) => name),
      );
    const asked = rows.map(([command]) => command);
    // Its own table refuses it always; the other one sends nothing.
    const endpoints = ["endpoint create", "endpoint generate"];
    expect(withFlag(/^--(?:base-|platform-)?url$/)).toEqual(new Set([...asked, ...endpoints]));
    // The sandbox takes the URLs of endpoints at its API.
    expect(withFlag(/^--allow-http$/)).toEqual(new Set([...asked, "sandbox"]));
  });
});

describe("output that cannot be written", () => {
  const cli = fileURLToPath(new URL("../dist/cli.js", import.meta.url));
  const ended = async (output: number | "pipe") => {
    const child = spawn(process.execPath, [cli, "--help"], { stdio: ["ignore", output, "pipe"] });
    child.stdout?.destroy();
    const [err, [code]] = await Promise.all([
      child.stderr === null ? "" : text(child.stderr),
      once(child, "close"),
    ]);
    return { code: code as unknown, err };
  };

  test("is one line, as on a full disk", async () => {
    const full = openSync("/dev/full", "w");
    const { code, err } = await ended(full).finally(() => closeSync(full));
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringMatching(/^error: the output cannot be written \(ENOSPC[^\n]*\); look [^\n]*\n$/),
    });
  });

  test("is not said of where its reader has left", async () => {
    expect(await ended("pipe")).toEqual({ code: 1, err: "" });
  });
});

test.each([
  [{}, false],
  [{ FORCE_COLOR: "1" }, true],
  [{ NO_COLOR: "1" }, false],
])("colours into a pipe are decided by %p", async (env, colours) => {
  const { out } = await bench.spawned(bench.payout(), env);
  expect(out.includes("\u001B[")).toBe(colours);
});

describe("a table", () => {
  const titles = ["key", "state", "reason"];
  const key = "payout:op-1.platform-1.business-1";
  const rows = [
    [key, "held", "the bank (銀行) has not answered, and nobody knows why"],
    ["short", "running", "—"],
  ];
  const linesOn = (columns: number | undefined): string[] =>
    tableText(titles, rows, { whole: 2, columns }).split("\n");
  const widthOf = (line: string): number => line.replaceAll(/[銀行]/gu, "xx").length;

  test("is as wide as it has to be in a pipe", () => {
    expect(linesOn(undefined)).toContain(`${key}  held     ${rows[0]?.[2]}`);
  });

  test.each([120, 80, 62, 60, 50])("fits a terminal of %d columns, with the key whole", (columns) => {
    const lines = linesOn(columns);
    expect(lines.filter((line) => widthOf(line) > columns)).toEqual([]);
    expect(lines[1]).toMatch(new RegExp(`^${key}  held     the b.*${columns < 120 ? "…" : "why"}$`));
  });

  test("becomes blocks where columns do not fit, and never breaks the key", () => {
    expect(linesOn(30)).toEqual([
      key,
      "  state   held",
      "  reason  the bank (銀行) has…",
      "short",
      "  state   running",
      "  reason  —",
      "",
    ]);
  });

  test("counts the columns of a terminal, not characters", () => {
    const on = (columns: number) =>
      tableText(["a"], [["金額金額金額"], ["e\u0301xxxxx"]], { whole: 0, columns });
    expect(on(12)).toBe("a\n金額金額金額\ne\u0301xxxxx\n");
    expect(on(6)).toBe("a\n金額…\ne\u0301xxxxx\n");
  });

  test.each([100, 40])("of keys check keeps keyid and thumbprint whole on %d columns", async (columns) => {
    const { out } = await run(["keys", "check", join(bench.directory, "test.public.pem")], { columns });
    expect(out).toMatch(columns === 100 ? /^keyid .*\ntest  .*no limit\n$/ : /^test\n {2}alg +ed25519\n/);
    expect(out).toMatch(/(?<![\w-])[\w-]{43}(?![\w-])/);
  });
});

class Terminal extends PassThrough {
  readonly isTTY: boolean;
  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }
}

describe("askAtTerminal", () => {
  const open = (): { input: Terminal; output: Terminal; ask: Ask } => {
    const [input, output] = [new Terminal(true), new Terminal(true)];
    const ask = askAtTerminal(input, output);
    if (ask === undefined) throw new Error("nobody is asked");
    return { input, output, ask };
  };

  test.each([
    ["a line", "done\n", "done"],
    ["an empty line", "\n", ""],
    ["the first of two lines", "done\nmore\n", "done"],
    ["Ctrl-C", "\u0003", undefined],
    ["Ctrl-D", "\u0004", undefined],
    ["Ctrl-C behind the answer, before Enter", "done\u0003", undefined],
    ["the end of the input as no answer", undefined, undefined],
  ])("shows the question, and takes %s", async (_name, typed, answer) => {
    const { input, output, ask } = open();
    const answered = ask("Sure? ");
    if (typed === undefined) input.end();
    else input.write(typed);
    expect(await answered).toBe(answer);
    output.end();
    expect(await text(output)).toContain("Sure? ");
  });

  test.each([
    ["the input is a pipe", false, true],
    ["the question would not be seen", true, false],
    ["there is no terminal at all", false, false],
  ])("asks nobody when %s", (_name, input, output) => {
    expect(askAtTerminal(new Terminal(input), new Terminal(output))).toBeUndefined();
  });
});

interface Manifest {
  readonly version: string;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

const { version, peerDependencies } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
) as Manifest;
const own = Object.entries(peerDependencies).filter(([name]) => name.startsWith("@countersign/"));

// All packages have one version. lerna raises dependencies, and scripts/release-files.mjs peers.
test.each(own)("the peer %s is accepted in the version of this release", (_name, range) => {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor = 0, oldestPatch = 0] = range.replace(/^\^/, "").split(".").map(Number);
  expect(range).toMatch(/^\^\d+\.\d+\.\d+$/);
  expect(major).toBe(oldestMajor);
  if (major === 0) expect(minor).toBe(oldestMinor);
  expect(minor * 1_000_000 + patch).toBeGreaterThanOrEqual(oldestMinor * 1_000_000 + oldestPatch);
});
