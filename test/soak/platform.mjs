// Two payer processes, and what is done to them.
import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("payer.mjs", import.meta.url));

/** Starts both processes. `config` is what they are told, `folder` is where they write down what they let pass. */
export async function startPlatform(config, folder) {
  const processes = await Promise.all(
    [0, 1].map((index) => startProcess(config, path.join(folder, `passes-${index}.log`))),
  );
  return {
    /** The base URL of one of them, or undefined while it is down. */
    urlOf: (index) => processes[index].url(),
    kill: (index) => processes[index].kill(),
    stop: (index, ms) => processes[index].stop(ms),
    end: () => Promise.all(processes.map((payer) => payer.end())),
  };
}

async function startProcess(config, log) {
  const payer = await launch(config, log);
  let current = payer;
  return {
    url: () => current?.url,
    /** The process dies at once, and another one takes its place. */
    async kill() {
      const { child } = current;
      current = undefined;
      child.kill("SIGKILL");
      await once(child, "exit");
      current = await launch(config, log);
    },
    /** The process sleeps, as a virtual machine that is moved does, and resumes in the middle of what it did. */
    async stop(ms) {
      const { child } = current;
      child.kill("SIGSTOP");
      await delay(ms);
      child.kill("SIGCONT");
    },
    async end() {
      if (current === undefined) return;
      const { child } = current;
      current = undefined;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

async function launch(config, log) {
  const child = fork(program, {
    // Lost leases are what the soak is about.
    execArgv: ["--disable-warning=CountersignWarning"],
    env: { ...process.env, NODE_ENV: "test", SOAK_PAYER: JSON.stringify({ ...config, log }) },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const port = await new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message.port));
    child.once("exit", (code, signal) => reject(new Error(`a payer ended at its start: ${code ?? signal}`)));
  });
  return { child, url: `http://127.0.0.1:${port}` };
}
