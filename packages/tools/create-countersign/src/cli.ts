#!/usr/bin/env node
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createCountersign, type World } from "./program.ts";

// The output's reader, such as head, may stop early: what is written is written.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}
process.exitCode = createCountersign(process.argv.slice(2), {
  cwd: process.cwd(),
  platform: process.platform,
  writeOut: (text) => process.stdout.write(text),
  writeError: (text) => process.stderr.write(text),
  install: (folder) => runNpm(["install"], folder),
  templates: fileURLToPath(new URL("../templates", import.meta.url)),
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is part of this package
  manifest: JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  ) as World["manifest"],
});

function runNpm(args: readonly string[], cwd: string): boolean {
  // The npm that runs this, else the one on the path: on Windows a .cmd file, which only a shell starts.
  const running = process.env["npm_execpath"];
  const isNpm = running !== undefined && /npm-cli\.c?js$/.test(running) && existsSync(running);
  const { status } = isNpm
    ? spawnSync(process.execPath, [running, ...args], { cwd, stdio: "inherit" })
    : spawnSync("npm", args, { cwd, stdio: "inherit", shell: process.platform === "win32" });
  return status === 0;
}
