// Runs the table of cases, or another program, on another runtime:
//     node test/adapters/run-elsewhere.mjs <binary of bun, deno, or node 24> [test/vectors/run.mjs]
import { spawn } from "node:child_process";
import { basename, dirname, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const [binary, program = "test/adapters/elsewhere.ts"] = process.argv.slice(2);
if (binary === undefined) {
  console.error("usage: node test/adapters/run-elsewhere.mjs <binary of bun, deno, or node 24> [program]");
  process.exit(2);
}
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
// The packages are installed: Deno must neither fetch nor lock anything, nor check types that the build has checked.
const deno = [
  "run",
  "--allow-all",
  "--no-check",
  "--no-lock",
  "--no-remote",
  "--cached-only",
  "--node-modules-dir=manual",
];
const options = basename(binary).startsWith("deno") ? deno : [];
const child = spawn(resolve(binary), [...options, resolve(root, program)], {
  cwd: root,
  env: { ...process.env, COUNTERSIGN_STDERR: "off" },
  stdio: ["ignore", "inherit", "inherit"],
});
child.on("error", (error) => {
  console.error(`run-elsewhere: ${error.message}`);
  process.exitCode = 1;
});
child.on("exit", (code, signal) => {
  if (signal !== null) console.error(`run-elsewhere: ended by ${signal}`);
  process.exitCode = code ?? 1;
});
