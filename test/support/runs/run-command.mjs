import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Runs a command with this terminal, hands signals on to it, and gives its exit code: 1 when a signal has ended it. */
export async function runCommand([command, ...args], env = process.env) {
  const child = spawn(command, args, { stdio: "inherit", env });
  // Whoever calls has something to end after the command, so a signal ends the command alone.
  for (const signal of signals) process.on(signal, () => child.kill(signal));
  const [code] = await once(child, "exit");
  for (const signal of signals) process.removeAllListeners(signal);
  return code ?? 1;
}
