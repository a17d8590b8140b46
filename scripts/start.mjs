// npm start: the whole exchange over real HTTP as a table, then a platform that goes on serving. --once: only the table.
import path from "node:path";
import { ensureReady, root, runScript } from "./setup.mjs";

const help = `npm start               shows every case, then serves
npm start -- --once     shows every case and ends: with 0
                        if all were as expected
npm start -- --help     shows this

PORT=4000 npm start     serves on another port than 3000
NO_COLOR=1 npm start    prints without colours`;

runScript(async () => {
  if (process.argv.includes("--help")) return console.log(help);
  ensureReady({ project: "examples/demo" });
  const { runDemo } = await import("../examples/demo/dist/demo.js");
  const cwd = process.env.INIT_CWD ?? process.cwd();
  await runDemo(process.argv.slice(2), { folder: path.join(root, ".demo"), cwd });
});
