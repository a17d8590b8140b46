import path from "node:path";
import { choices, defaultFolder, defaults, type Choices } from "./choices.ts";
import { help, readFlags, UsageError, type Flags } from "./flags.ts";
import { nameOf } from "./package-name.ts";
import { projectFiles } from "./project-files.ts";
import type { Answers, Ask } from "./questions.ts";
import { printable, quoted } from "./terminal-text.ts";
import { FolderError, folderFault, writeProject } from "./write-project.ts";

/** What the command knows of the world; tests hand in their own. */
export interface World {
  readonly cwd: string;
  readonly writeOut: (text: string) => void;
  readonly writeError: (text: string) => void;
  /** Undefined when nobody sits at a terminal. */
  readonly ask: Ask | undefined;
  /** As `process.platform`. */
  readonly platform: string;
  /** Runs npm install in a folder; whether it succeeded. */
  readonly install: (folder: string) => boolean;
  /** The folder with what is copied. */
  readonly templates: string;
  /** Of this package, and of what its templates use. */
  readonly manifest: { readonly version: string; readonly devDependencies: Readonly<Record<string, string>> };
}

/** 0: written; 1: not written, or npm install failed; 2: the command line cannot be used. */
export type ExitCode = 0 | 1 | 2;

/** Runs the command line, and gives its exit code. */
export async function createCountersign(args: readonly string[], world: World): Promise<ExitCode> {
  try {
    const flags = readFlags(args);
    if (flags.help) world.writeOut(help);
    else if (flags.version) world.writeOut(`${world.manifest.version}\n`);
    else return await create(flags, world);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof FolderError)) throw error;
    world.writeError(`error: ${printable(error.message)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

async function create(flags: Flags, world: World): Promise<ExitCode> {
  const resolve = (folder: string): string => path.resolve(world.cwd, folder);
  // Before anything is asked.
  if (flags.folder !== undefined) assertWritable(resolve(flags.folder));
  const answers = await answersOf(flags, world, resolve);
  if (answers === undefined) return 1;
  const folder = resolve(answers.folder);
  const name = flags.name ?? nameOf(path.basename(folder));
  const { templates, manifest } = world;
  writeProject(folder, projectFiles({ ...answers, name, templates, versions: manifest.devDependencies }));
  const installed = flags.install && world.install(folder);
  const project = { ...answers, folder, name, installed };
  world.writeOut(printable(report(project, path.relative(world.cwd, folder), world.platform)));
  return flags.install && !installed ? 1 : 0;
}

function assertWritable(folder: string): void {
  const fault = folderFault(folder);
  if (fault !== undefined) throw new FolderError(fault);
}

async function answersOf(
  flags: Flags,
  { ask, writeError }: World,
  resolve: (folder: string) => string,
): Promise<Answers | undefined> {
  const { folder = defaultFolder, framework = defaults.framework } = flags;
  const { store = defaults.store } = flags;
  const answers = { folder, framework, store };
  const open = (["folder", "framework", "store"] as const).filter((key) => flags[key] === undefined);
  if (open.length === 0 || flags.yes) return answers;
  if (ask !== undefined) return ask(flags, resolve);
  const taken = open.map((key) => (key === "folder" ? folder : `--${key} ${answers[key]}`)).join(" ");
  writeError(`Nobody to ask at a terminal, so these are taken: ${printable(taken)}\n`);
  return answers;
}

interface Told extends Choices {
  readonly folder: string;
  readonly name: string;
  readonly installed: boolean;
}

function report({ folder, name, installed, ...chosen }: Told, place: string, platform: string): string {
  const { framework, store } = chosen;
  const what = `${choices.framework[framework]}, ${choices.store[store]}, TypeScript`;
  const steps = [
    ...(place === "" ? [] : [stepInto(place, platform)]),
    ...(installed ? [] : ["npm install"]),
    ...servers[store],
    "npm test",
    "npm run keys     # .env, with test keys that git ignores",
    "npm run dev      # the platform, on port 3000",
    "npm run play     # in a second terminal: the lending service",
  ];
  return `\nWrote ${name} to ${folder}\n(${what}).\n\nNext:\n\n${steps.map((step) => `  ${step}\n`).join("")}
README.md tells where things are, and what to make your own.\n`;
}

const servers: Readonly<Record<Choices["store"], readonly string[]>> = {
  sqlite: [],
  postgres: ["export DATABASE_URL=postgres://postgres@127.0.0.1:5432/postgres"],
};

function stepInto(place: string, platform: string): string {
  const word = quoted(place, platform);
  return word === undefined ? `(go to the folder ${place})` : `cd ${word}`;
}
