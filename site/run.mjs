// npm run docs [-- --port 5173]: the pages, served on loopback and written anew when one changes. docs:build [-- --base /path/]: as
// static files in site/dist. docs:check: builds them and looks at each in a browser. Installs this folder's own dependencies once.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ensureReady, isInstallCurrent, npmCommand, runScript, SetupError } from "../scripts/setup.mjs";

const folder = fileURLToPath(new URL(".", import.meta.url));
const { values, positionals } = parseArgs({
  options: { base: { type: "string" }, port: { type: "string", default: "5173" } },
  allowPositionals: true,
});
const [task = "serve"] = positionals;

runScript(async () => {
  ensureReady();
  if (!isInstallCurrent(folder)) install();
  if (values.base !== undefined) {
    if (!/^\/([\w.~-]+\/)*$/.test(values.base)) throw new SetupError("--base: begins and ends with a slash");
    process.env["DOCS_BASE"] = values.base;
  }
  const tasks = await import("./scripts/tasks.mjs");
  if (!Object.hasOwn(tasks, task))
    throw new SetupError(`${task} is none of ${Object.keys(tasks).join(", ")}`);
  await tasks[task]({ port: Number(values.port) });
});

function install() {
  const { file, args, shell } = npmCommand(process.env, process.platform, ["ci"]);
  const { status } = spawnSync(file, args, { cwd: folder, stdio: ["ignore", 2, 2], shell });
  if (status !== 0) throw new SetupError("npm ci failed in site: see its output above");
}
