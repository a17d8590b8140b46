// npm run docs [-- --port 5173]: the pages, served on loopback and written anew when one changes. docs:build [-- --base /path/]: as
// static files in site/dist. docs:check: builds them and looks at each in a browser. Installs this folder's own dependencies once.
import { parseArgs } from "node:util";
import { ensureReady, runScript, SetupError } from "../scripts/setup.mjs";
import { ensureSiteInstalled } from "./scripts/install.mjs";

const { values, positionals } = parseArgs({
  options: { base: { type: "string" }, port: { type: "string", default: "5173" } },
  allowPositionals: true,
});
const [task = "serve"] = positionals;

runScript(async () => {
  ensureReady();
  ensureSiteInstalled();
  if (values.base !== undefined) {
    if (!/^\/([\w.~-]+\/)*$/.test(values.base)) throw new SetupError("--base: begins and ends with a slash");
    process.env["DOCS_BASE"] = values.base;
  }
  const tasks = await import("./scripts/tasks.mjs");
  if (!Object.hasOwn(tasks, task))
    throw new SetupError(`${task} is none of ${Object.keys(tasks).join(", ")}`);
  await tasks[task]({ port: Number(values.port) });
});
