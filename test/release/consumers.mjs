// Projects of somebody else: empty folders in which the commands of the READMEs are typed, and their first examples run. What they
// install, and the READMEs themselves, come from the registry.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeModule, manifest, node, npm, root, tryNpm, writeJson } from "../consumers/support.mjs";

const sender = join(dirname(fileURLToPath(import.meta.url)), "project");

/** Steps, each with `run(work, { clone, version })`, which throws unless all went well. Those of one list need each other. */
export const consumers = [
  [{ title: "npm create countersign@latest: what it writes passes its own tests", run: checkCreated }],
  [
    { title: "countersign: its README's example takes a payout and a webhook once", run: checkUmbrella },
    { title: "npx countersign says what to install, and is the command once it is there", run: checkCommand },
  ],
];

async function checkUmbrella(work, { clone, version }) {
  const folder = await project(work, "umbrella", installLine(clone, "packages/endpoints/countersign"));
  await compile(folder, firstExample(readme(folder, "countersign")));
  await node(["example.mjs"], folder);
  checkVersions(folder, version);
}

async function checkCommand(work) {
  const folder = join(work, "projects", "umbrella");
  // They bring the command.
  await npm(["uninstall", "--loglevel=error", "@countersign/devtools"], folder);
  const missing = await npx(["keys", "held"], folder);
  if (missing.status !== 2 || !missing.stderr.includes("npm install --save-dev @countersign/cli")) {
    throw new Error(`npx countersign ended with ${missing.status}\n${missing.stdout}${missing.stderr}`);
  }
  await npm(["install", "--save-dev", "--loglevel=error", "@countersign/cli"], folder);
  const held = await npx(["keys", "held", "--store-url", "sqlite:platform.db"], folder);
  if (held.status !== 0) throw new Error(`keys held ended with ${held.status}\n${held.stdout}${held.stderr}`);
  // From the page that is copied into the package.
  const told = await npx(["code", "in-flight"], folder);
  if (told.status !== 0 || !told.stdout.includes("Remedy"))
    throw new Error(`code ended with ${told.status}\n${told.stdout}${told.stderr}`);
}

/** As its README says, with flags in place of answers. */
async function checkCreated(work, { version }) {
  const projects = join(work, "projects");
  mkdirSync(projects, { recursive: true });
  const choices = ["--framework", "express", "--store", "sqlite"];
  // npm's own question, whether to fetch what is not installed.
  await npm(["create", "--yes", "countersign@latest", "created", "--", ...choices], projects);
  const folder = join(projects, "created");
  checkWritten(folder, version);
  await npm(["install", "--loglevel=error"], folder);
  checkVersions(folder, version);
  const tested = await npm(["test"], folder);
  if (!/^(?:#|ℹ) pass [1-9]\d*$/m.test(tested)) throw new Error(`it has tested nothing:\n${tested}`);
  await npm(["run", "build"], folder);
}

// Ranges of ours begin with this release.
function checkWritten(folder, version) {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const own = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) =>
    /^(?:@countersign\/|countersign$)/.test(name),
  );
  if (own.length === 0 || own.some(([, range]) => range !== `^${version}`)) {
    throw new Error(`written were ${own.map((entry) => entry.join("@")).join(", ")}`);
  }
}

/** An empty project, after the command of a README, and what sends to it and compiles it. */
async function project(work, name, command) {
  const folder = makeModule(join(work, "projects", name), "module");
  await npm([...command, "--loglevel=error"], folder);
  const types = ["@types/express", "@types/node"].map(
    (type) => `${type}@${manifest().devDependencies[type]}`,
  );
  await npm(["install", "--save-dev", "--loglevel=error", "@countersign/devtools", ...types], folder);
  for (const file of readdirSync(sender)) cpSync(join(sender, file), join(folder, file));
  return folder;
}

// As it stands there: the words behind npm.
function installLine(clone, folder) {
  const line = /^ *npm (install (?!--save-dev).*)$/m.exec(
    readFileSync(join(clone, folder, "README.md"), "utf8"),
  );
  if (line === null) throw new Error(`the README of ${folder} does not say what to install`);
  return line[1].trim().split(/\s+/);
}

function readme(folder, name) {
  return readFileSync(join(folder, "node_modules", name, "README.md"), "utf8");
}

function firstExample(text) {
  const code = /```ts\n([\s\S]*?)```/.exec(text)?.[1];
  if (code === undefined) throw new Error("a README has no example");
  return code;
}

// Our own declarations are checked as well.
async function compile(folder, code) {
  writeFileSync(join(folder, "app.ts"), code);
  const compilerOptions = {
    module: "nodenext",
    target: "es2022",
    types: ["node"],
    strict: true,
    declaration: true,
    skipLibCheck: false,
  };
  writeJson(join(folder, "tsconfig.json"), { compilerOptions, files: ["app.ts"] });
  await node([join(root, "node_modules", "typescript", "bin", "tsc"), "-p", "."], folder);
}

// Two copies of one of our packages would work, and mean that versions of a release do not fit each other.
function checkVersions(folder, version) {
  const lock = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"));
  const own = Object.entries(lock.packages).filter(([path]) =>
    /node_modules\/(@countersign\/[^/]+|countersign)$/.test(path),
  );
  const wrong = own.filter(
    ([path, entry]) => entry.version !== version || path.lastIndexOf("node_modules/") !== 0,
  );
  if (own.length < 5 || wrong.length > 0) {
    throw new Error(`installed were ${own.map(([path, entry]) => `${path} ${entry.version}`).join(", ")}`);
  }
  if (!existsSync(join(folder, "node_modules", "express"))) throw new Error("express is missing");
}

// --no: what is not installed is not fetched.
function npx(args, folder) {
  return tryNpm(["exec", "--no", "--", "countersign", ...args], folder);
}
