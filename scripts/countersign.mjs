// npm run countersign -- <command>: the command line of packages/tools/cli, built when needed.
import path from "node:path";
import { ensureReady, root, runScript } from "./setup.mjs";
import { runNode } from "./run-node.mjs";

runScript(() => {
  ensureReady({ project: "packages/tools/cli" });
  // npm runs scripts in the workspace's folder; the paths among the arguments are meant from where the user stands.
  const cwd = process.env.INIT_CWD ?? process.cwd();
  runNode([path.join(root, "packages/tools/cli/dist/cli.js"), ...process.argv.slice(2)], { cwd });
});
