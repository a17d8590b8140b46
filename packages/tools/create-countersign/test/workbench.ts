import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { choices, type Choices } from "../src/flags.ts";
import { createCountersign, type ExitCode, type World } from "../src/program.ts";

const home = fileURLToPath(new URL("..", import.meta.url));

export const templates = path.join(home, "templates");

export const manifest = JSON.parse(
  readFileSync(path.join(home, "package.json"), "utf8"),
) as World["manifest"] & {
  readonly version: string;
};

/** A folder for the tests of one file, to be removed by `remove`. */
export interface Workbench {
  readonly folder: string;
  run(args: readonly string[], world?: Partial<World>): Ran;
  remove(): void;
}

interface Ran {
  readonly code: ExitCode;
  readonly out: string;
  readonly error: string;
}

export function workbench(): Workbench {
  const work = mkdtempSync(path.join(tmpdir(), "create-countersign-test-"));
  const folder = mkdtempSync(path.join(work, "cwd-"));
  return {
    folder,
    run(args, world = {}) {
      const [out, error]: [string[], string[]] = [[], []];
      const code = createCountersign(args, {
        cwd: folder,
        platform: "linux",
        writeOut: (text) => out.push(text),
        writeError: (text) => error.push(text),
        install: () => {
          throw new Error("npm install was not asked for");
        },
        templates,
        manifest,
        ...world,
      });
      return { code, out: out.join(""), error: error.join("") };
    },
    remove: () => rmSync(work, { recursive: true, force: true }),
  };
}

export const combinations: readonly Choices[] = keysOf(choices.framework).flatMap((framework) =>
  keysOf(choices.store).map((store) => ({ framework, store })),
);

function keysOf<Table extends object>(table: Table): (keyof Table)[] {
  return Object.keys(table) as (keyof Table)[];
}
