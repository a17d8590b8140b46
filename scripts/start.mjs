// npm start: the whole exchange over real HTTP as a table, then a platform that goes on serving. --once: only the table.
import path from "node:path";
import { ensureReady, root, runScript } from "./setup.mjs";

runScript(async () => {
  ensureReady({ project: "examples/demo" });
  const { runDemo } = await import("../examples/demo/dist/demo.js");
  const cwd = process.env.INIT_CWD ?? process.cwd();
  await runDemo(process.argv.slice(2), { folder: path.join(root, ".demo"), cwd });
});
