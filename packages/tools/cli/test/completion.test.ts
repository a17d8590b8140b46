import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { run } from "./cli-bench.ts";

const folder = mkdtempSync(join(tmpdir(), "countersign-completion-"));
const scripts = new Map<string, string>();

beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const file = join(folder, `countersign.${shell}`);
    const { code, out } = await run(["completion", shell]);
    if (code !== 0) throw new Error(out);
    writeFileSync(file, out);
    scripts.set(shell, file);
  }
  writeFileSync(join(folder, "a key.pem"), "");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ["-c", "exit 0"]).status === 0;
}

/** What the shell offers behind the words; the last one is being typed. */
type Complete = (words: readonly string[]) => readonly string[];

const inBash: Complete = (words) => {
  const text =
    'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _countersign; printf "%s\\n" "${COMPREPLY[@]}"';
  const args = ["--norc", "-c", text, "bash", scripts.get("bash") ?? "", ...words];
  return lines(execFileSync("bash", args, { cwd: folder, encoding: "utf8" }));
};

const fish: string = "fish";

const inFish: Complete = (words) => {
  const args = ["--no-config", "-c", 'source $argv[1]; complete -C "$argv[2]"', scripts.get("fish") ?? ""];
  const out = execFileSync(fish, [...args, words.join(" ")], { cwd: folder, encoding: "utf8" });
  return lines(out).map((line) => line.split("\t")[0] ?? "");
};

/** zsh completes in its line editor alone: in a terminal of zpty, whose completions are printed by a compadd of the test. */
const inZsh: Complete = (words) => {
  const file = join(folder, "zpty.zsh");
  writeFileSync(file, zpty);
  const args = ["-f", file, scripts.get("zsh") ?? "", words.join(" ")];
  const out = execFileSync("zsh", args, { cwd: folder, encoding: "utf8", timeout: 60_000 });
  return [...new Set(lines(out))];
};

const zpty = String.raw`
zmodload zsh/zpty
zpty -b z zsh -f -i
rm -f ready
: > hits
zpty -w z 'PROMPT="" RPROMPT=""; unsetopt zle_bracketed_paste; autoload -Uz compinit; compinit -u -D'
zpty -w z "source $1"
zpty -w z 'compadd() {
  if [[ $@[(I)-[OAD]] -gt 0 ]]; then builtin compadd "$@"; return; fi
  local -a hits; builtin compadd -A hits "$@"; print -rl -- $hits >> '$PWD/hits'
  builtin compadd "$@"
}'
zpty -w z ": > $PWD/ready"
until [[ -e ready ]]; do sleep 0.05; done
zpty -w -n z "$2"$'\t'
until [[ -s hits ]]; do sleep 0.05; done
zpty -d z
cat hits
`;

function lines(text: string): string[] {
  return text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

const shells: readonly [string, Complete][] = [
  ["bash", inBash],
  ["zsh", inZsh],
  ["fish", inFish],
];

for (const [shell, complete] of shells) {
  // bash is everywhere; a machine without the others says so by the names of what it left out, and CI has them all.
  const isDue = shell === "bash" || process.env["CI"] === "true" || isInstalled(shell);
  const describeInstalled = isDue ? describe : describe.skip;
  describeInstalled(`completion in ${shell}`, () => {
    test.each<[string, readonly string[], readonly string[]]>([
      ["commands", ["countersign", "de"], ["deliveries"]],
      ["subcommands", ["countersign", "keys", "reo"], ["reopen"]],
      ["flags of a subcommand", ["countersign", "keys", "held", "--js"], ["--json"]],
      ["flags behind flags", ["countersign", "payout", "--url", "x", "--tam"], ["--tamper"]],
      ["choices", ["countersign", "payout", "--tamper", "sig"], ["signature"]],
      ["events", ["countersign", "trigger", "sel"], ["seller.status_changed"]],
      ["shells", ["countersign", "completion", "fi"], ["fish"]],
    ])("knows %s", (_name, words, expected) => {
      expect(complete(words)).toEqual(expected);
    });

    test("offers every command that there is", () => {
      const offered = complete(["countersign", ""]);
      for (const name of ["doctor", "keygen", "keys", "migrate", "payout", "resend", "sandbox", "trigger"]) {
        expect(offered).toContain(name);
      }
    });

    test("offers files where a flag names one", () => {
      expect(complete(["countersign", "payout", "--key", "a"]).join()).toMatch(/a(?:\\)? key\.pem/);
    });
  });
}

test("the script is ASCII, and --json holds it", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { out } = await run(["completion", shell]);
    const json = await run(["completion", shell, "--json"]);
    expect(JSON.parse(json.out)).toEqual({ shell, script: out });
  }
});

test("another shell is bad usage in one line", async () => {
  expect(await run(["completion", "tcsh"])).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^error: .*Allowed choices are bash, zsh, fish[^\n]*\n$/),
  });
});
