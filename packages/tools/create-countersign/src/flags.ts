import { parseArgs } from "node:util";
import { defaultName, nameFault } from "./package-name.ts";
import { folderNameFault } from "./terminal-text.ts";

/** The first of each is the default. */
export const choices = {
  framework: { express: "Express", fastify: "Fastify" },
  store: { sqlite: "SQLite", postgres: "PostgreSQL", mariadb: "MariaDB" },
} as const;

export interface Choices {
  readonly framework: keyof typeof choices.framework;
  readonly store: keyof typeof choices.store;
}

export class UsageError extends Error {
  override readonly name: string = "UsageError";
}

export interface Flags extends Choices {
  readonly folder: string;
  readonly name?: string | undefined;
  readonly install: boolean;
  readonly help: boolean;
  readonly version: boolean;
}

export const help: string = `Usage: npm create countersign@latest [folder] [-- flags]

Writes a small platform in TypeScript that receives a lending service's signed
payouts and its webhooks, each handled once. Nothing is asked, and nothing is
sent anywhere.

  --framework <name>  express (default) or fastify
  --store <name>      sqlite (default), postgres or mariadb
  --name <name>       name of the package; default: that of the folder
  --install           run npm install in the folder afterwards
  -h, --help          this text
  -v, --version       the version

The folder is ${defaultName} unless you name one. It has to be empty, or not
there yet; a .git in it is fine.

Exit codes: 0 written, 1 not written or npm install failed, 2 a wrong flag

Example:
  npm create countersign@latest my-platform -- --store postgres
`;

const options = {
  framework: { type: "string", default: "express" },
  store: { type: "string", default: "sqlite" },
  name: { type: "string" },
  install: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
  version: { type: "boolean", short: "v", default: false },
} as const;

/** Throws a UsageError. */
export function readFlags(args: readonly string[]): Flags {
  const { values, positionals } = parse(args);
  if (positionals.length > 1) {
    throw new UsageError(
      `one folder can be written at a time, got ${positionals.join(" ")}; through npm, flags stand after --: npm create countersign@latest my-platform -- --store postgres`,
    );
  }
  const [folder = defaultName] = positionals;
  if (folder === "") throw new UsageError("the folder has no name");
  const folderFault = folderNameFault(folder);
  if (folderFault !== undefined) throw new UsageError(folderFault);
  const fault = values.name === undefined ? undefined : nameFault(values.name);
  if (fault !== undefined) throw new UsageError(`--name: ${fault}`);
  return {
    ...values,
    folder,
    framework: readChoice("framework", values.framework),
    store: readChoice("store", values.store),
  };
}

type Parsed = ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>;

function parse(args: readonly string[]): Parsed {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    // Node's message goes on with advice about the parser.
    const [reason = ""] = (error instanceof Error ? error.message : String(error)).split(/\. |\n/, 1);
    throw new UsageError(`${reason.replace(/\.$/, "")}; --help lists the flags`, { cause: error });
  }
}

function readChoice<Asked extends keyof Choices>(question: Asked, value: string): Choices[Asked] {
  if (isChoice(question, value)) return value;
  const names = Object.keys(choices[question]).join(", ");
  throw new UsageError(`--${question} is one of ${names}, got ${JSON.stringify(value)}`);
}

function isChoice<Asked extends keyof Choices>(question: Asked, value: string): value is Choices[Asked] {
  return Object.hasOwn(choices[question], value);
}
