// Runs a command beside processes that keep a processor busy each, as on a machine with other work to do:
//     node test/support/runs/with-load.mjs 2 npm test
import process from "node:process";
import { endProcess, spawnPrivate } from "../servers/private-process.mjs";
import { runCommand } from "./run-command.mjs";

const [count, ...command] = process.argv.slice(2);
if (!/^[1-9]\d?$/.test(count ?? "") || command.length === 0)
  throw new Error("usage: node test/support/runs/with-load.mjs PROCESSES COMMAND [ARGUMENT …]");
const busy = Array.from({ length: Number(count) }, () =>
  spawnPrivate(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
);
try {
  process.exitCode = await runCommand(command);
} finally {
  await Promise.all(busy.map((child) => endProcess(child, "SIGKILL")));
}
