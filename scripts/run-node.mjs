import { spawn } from "node:child_process";

/** Runs Node with this terminal, hands signals on, and ends this process as the child ended. */
export function runNode(args, { cwd }) {
  const child = spawn(process.execPath, args, { cwd, stdio: "inherit" });
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  const handOn = (signal) => child.kill(signal);
  // A Ctrl-C at a terminal reaches the child without us; staying alive for its exit code is what is needed then.
  for (const signal of signals)
    process.on(signal, signal === "SIGINT" && process.stdin.isTTY ? () => {} : handOn);
  watchParent(() => handOn("SIGTERM"));
  child.on("error", (error) => {
    console.error(`cannot run Node: ${error.message}`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => {
    for (const name of signals) process.removeAllListeners(name);
    if (signal === null) process.exitCode = code ?? 1;
    else process.kill(process.pid, signal);
  });
}

/** Under npm, calls `onGone` when the parent has gone: npm starts a script through a shell, and one that is ended hands no signal on. */
export function watchParent(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onGone();
  }, 250);
  timer.unref();
}
