import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Command } from "commander";
import { wantsColours, type CommandIo } from "../src/command-io.ts";
import { createProgram } from "../src/program.ts";
import { shorten, tableFor, textWidth, wrap } from "../src/table.ts";
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
  test("knows every command", () => {
    const names = paths.map((path) => path.join(" "));
    for (const name of ["keys resolve", "doctor", "sandbox", "trigger", "endpoint create"]) {
      expect(names).toContain(name);
    }
  });

  test.each(paths.map((path) => ({ name: path.join(" ") || "countersign", path })))(
    "of $name stands within 80 columns, on any terminal, and tells the exit codes",
    async ({ path }) => {
      for (const columns of [undefined, 80, 200]) {
        const { code, out } = await run([...path, "--help"], { columns });
        expect({ code, wide: out.split("\n").filter((line) => textWidth(line) > 80) }).toEqual({
          code: 0,
          wide: [],
        });
        if (!isGroup(path)) expect(out).toMatch(/^Exit codes/m);
      }
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

  function leavesOf(command: Command): Command[] {
    return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
  }
});

describe("what was mistyped", () => {
  test.each([
    [["payuot"], "error: unknown command 'payuot' (did you mean payout?)\n"],
    [["keys", "hled"], "error: unknown command 'hled' (did you mean held?)\n"],
    [["payout", "--ulr", "x"], "error: unknown option '--ulr' (did you mean --url?)\n"],
    [
      ["keys", "held", "--store", "x"],
      "error: unknown option '--store' (did you mean --store-url or --store-module?)\n",
    ],
    [["keys", "held", "--jsn"], "error: unknown option '--jsn' (did you mean --json?)\n"],
    [["keys", "held", "--zzzzzz"], "error: unknown option '--zzzzzz'; see countersign keys held --help\n"],
    [["keygen", "\u001B[2J"], /^error: too many arguments.*; see countersign keygen --help\n$/],
    [["\u001B[2J"], /^error: unknown command '\\u\{1b\}\[2J'/],
  ])("%p is answered with what was meant", async (args, line) => {
    const { code, out, err } = await run(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    if (typeof line === "string") expect(err).toBe(line);
    else expect(err).toMatch(line);
    expect(err).not.toContain("\u001B");
  });

  test("is answered so by the process too", async () => {
    expect(await bench.spawned(["sandbx"])).toEqual({
      code: 2,
      out: "",
      err: "error: unknown command 'sandbx' (did you mean sandbox?)\n",
    });
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
    // Its own table refuses it whatever is allowed.
    const endpoint = "endpoint create";
    expect(withFlag(/^--(?:base-|platform-)?url$/)).toEqual(new Set([...asked, endpoint]));
    // The sandbox takes the URLs of endpoints at its API.
    expect(withFlag(/^--allow-http$/)).toEqual(new Set([...asked, endpoint, "sandbox"]));
  });
});

describe("wantsColours", () => {
  test.each<[string, boolean, Record<string, string>, boolean]>([
    ["FORCE_COLOR in a pipe", false, { FORCE_COLOR: "1" }, true],
    ["FORCE_COLOR beside NO_COLOR", false, { FORCE_COLOR: "1", NO_COLOR: "1" }, true],
    ["FORCE_COLOR=0 in a terminal", true, { FORCE_COLOR: "0" }, false],
    ["an empty FORCE_COLOR in a pipe", false, { FORCE_COLOR: "" }, false],
  ])("%s", (_name, isTerminal, env, expected) => {
    expect(wantsColours(isTerminal, env)).toBe(expected);
  });

  test.each([
    [{}, false],
    [{ FORCE_COLOR: "1" }, true],
    [{ NO_COLOR: "1" }, false],
  ])("decides in the process with %p", async (env, colours) => {
    const { out } = await bench.spawned(bench.payout(), env);
    expect(out.includes("\u001B[")).toBe(colours);
  });
});

describe("a table", () => {
  const columns = [{ title: "key", whole: true }, { title: "state" }, { title: "reason" }] as const;
  const key = "payout:op-1.platform-1.business-1";
  const rows = [
    [key, "held", "the bank has not answered, and nobody knows why"],
    ["short", "run", "—"],
  ];
  const textOf = (terminalColumns: number | undefined): string => {
    const { head, row } = tableFor(columns, rows, terminalColumns);
    return head + rows.map(row).join("");
  };

  test("is as wide as it has to be in a pipe", () => {
    expect(textOf(undefined)).toContain(`${key}  held   the bank has not answered, and nobody knows why\n`);
  });

  test.each([120, 80, 60, 52])("fits a terminal of %d columns, with the key whole", (terminalColumns) => {
    const text = textOf(terminalColumns);
    expect(text.split("\n").filter((line) => textWidth(line) > terminalColumns)).toEqual([]);
    expect(text).toContain(`${key}  held`);
    expect(text.includes("…")).toBe(terminalColumns < 90);
  });

  test("becomes blocks where columns do not fit, and never breaks the key", () => {
    const text = textOf(30);
    expect(text).toMatch(new RegExp(`^${key.replaceAll(".", "\\.")}\n  state   held\n  reason  the bank`));
    expect(text).toMatch(/^ {2}reason {2}.{19}…$/m);
  });

  test("counts the columns of a terminal, not characters", () => {
    expect(textWidth("e\u0301")).toBe(1);
    expect(textWidth("金額")).toBe(4);
    expect(shorten("金額金額", 6)).toBe("金額…");
    expect(wrap("a bc def", 4)).toEqual(["a bc", "def"]);
  });
});
