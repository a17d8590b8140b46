import path from "node:path";
import { choices, help, readFlags, UsageError, type Choices, type Flags } from "./flags.ts";
import { nameOf } from "./package-name.ts";
import { projectFiles } from "./project-files.ts";
import { printable, quoted } from "./terminal-text.ts";
import { FolderError, writeProject } from "./write-project.ts";

export interface World {
  readonly cwd: string;
  readonly writeOut: (text: string) => void;
  readonly writeError: (text: string) => void;
  readonly platform: string;
  readonly install: (folder: string) => boolean;
  readonly templates: string;
  /** Of this package, with the versions that its templates use. */
  readonly manifest: { readonly version: string; readonly devDependencies: Readonly<Record<string, string>> };
}

/** 0: written; 1: not written, or npm install failed; 2: the command line cannot be used. */
export type ExitCode = 0 | 1 | 2;

export function createCountersign(args: readonly string[], world: World): ExitCode {
  try {
    const flags = readFlags(args);
    if (flags.help) world.writeOut(help);
    else if (flags.version) world.writeOut(`${world.manifest.version}\n`);
    else return create(flags, world);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof FolderError)) throw error;
    world.writeError(`error: ${printable(error.message)}\n`);
    return error instanceof UsageError ? 2 : 1;
  }
}

function create({ framework, store, install, ...flags }: Flags, world: World): ExitCode {
  const { cwd, templates, manifest, platform } = world;
  const folder = path.resolve(cwd, flags.folder);
  const name = flags.name ?? nameOf(path.basename(folder));
  const project = { framework, store, name };
  writeProject(folder, projectFiles({ ...project, templates, versions: manifest.devDependencies }));
  const installed = install && world.install(folder);
  world.writeOut(printable(report({ ...project, folder, installed }, path.relative(cwd, folder), platform)));
  return install && !installed ? 1 : 0;
}

interface Told extends Choices {
  readonly folder: string;
  readonly name: string;
  readonly installed: boolean;
}

function report(
  { folder, name, installed, framework, store }: Told,
  place: string,
  platform: string,
): string {
  const what = `${choices.framework[framework]}, ${choices.store[store]}, TypeScript`;
  const steps = [
    ...(place === "" ? [] : [stepInto(place, platform)]),
    ...(installed ? [] : ["npm install"]),
    ...(store === "sqlite" ? [] : [`export DATABASE_URL=${databaseUrls[store]}`]),
    "npm test",
    "npm run keys     # .env, with test keys that git ignores",
    "npm run dev      # the platform on port 3000, and two pages to try it with",
    "npm run play     # in a second terminal: the lending service",
  ];
  return `\nWrote ${name} to ${folder}\n(${what}).\n\nNext:\n\n${steps.map((step) => `  ${step}\n`).join("")}
README.md tells where things are, and what to make your own.\n`;
}

const databaseUrls = {
  postgres: "postgres://postgres@127.0.0.1:5432/postgres",
  mariadb: "mysql://root@127.0.0.1:3306/test",
};

function stepInto(place: string, platform: string): string {
  const word = quoted(place, platform);
  return word === undefined ? `(go to the folder ${place})` : `cd ${word}`;
}
