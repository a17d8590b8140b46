import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { choices, type Choices } from "../src/choices.ts";
import { createCountersign, type ExitCode, type World } from "../src/program.ts";

const home = fileURLToPath(new URL("..", import.meta.url));

export const manifest = JSON.parse(
  readFileSync(path.join(home, "package.json"), "utf8"),
) as World["manifest"] & {
  readonly version: string;
};

/** A folder for the tests of one file, to be removed by `remove`. */
export interface Workbench {
  readonly folder: string;
  readonly templates: string;
  /** Runs the command there. */
  run(args: readonly string[], world?: Partial<World>): Promise<Ran>;
  remove(): void;
}

interface Ran {
  readonly code: ExitCode;
  readonly out: string;
  readonly error: string;
}

/** Builds the templates as a publication does, aside from dist. */
export function workbench(): Workbench {
  const work = mkdtempSync(path.join(tmpdir(), "create-countersign-test-"));
  const templates = path.join(work, "templates");
  execFileSync(process.execPath, [path.join(home, "scripts", "build-templates.mjs"), templates]);
  const folder = mkdtempSync(path.join(work, "cwd-"));
  return {
    folder,
    templates,
    async run(args, world = {}) {
      const [out, error]: [string[], string[]] = [[], []];
      const code = await createCountersign(args, {
        cwd: folder,
        platform: "linux",
        writeOut: (text) => out.push(text),
        writeError: (text) => error.push(text),
        ask: undefined,
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

/** All that can be chosen. */
export const combinations: readonly Choices[] = keysOf(choices.framework).flatMap((framework) =>
  keysOf(choices.store).flatMap((store) =>
    keysOf(choices.language).map((language) => ({ framework, store, language })),
  ),
);

function keysOf<Table extends object>(table: Table): (keyof Table)[] {
  return Object.keys(table) as (keyof Table)[];
}
