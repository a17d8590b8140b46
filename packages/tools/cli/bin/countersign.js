#!/usr/bin/env node
// npm links a command only if its file exists when npm installs. In a clone dist comes later, from the build, so this file is committed.
import { existsSync } from "node:fs";

const program = new URL("../dist/cli.js", import.meta.url);
if (existsSync(program)) void import(program.href);
else {
  process.stderr.write("error: the command is not built yet; run npm run build in the root of the clone\n");
  process.exitCode = 2;
}
