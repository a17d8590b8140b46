import { readFileSync } from "node:fs";
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

interface Ran {
  readonly code: ExitCode;
  readonly out: string;
  readonly error: string;
}

/** Runs the command in the folder `cwd`. */
export function run(args: readonly string[], world: Pick<World, "cwd"> & Partial<World>): Ran {
  const [out, error]: [string[], string[]] = [[], []];
  const code = createCountersign(args, {
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
}

export const combinations: readonly Choices[] = keysOf(choices.framework).flatMap((framework) =>
  keysOf(choices.store).map((store) => ({ framework, store })),
);

function keysOf<Table extends object>(table: Table): (keyof Table)[] {
  return Object.keys(table) as (keyof Table)[];
}
