// Payer processes, and what is done to them.
import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const payerProgram = fileURLToPath(new URL("payer.mjs", import.meta.url));

/**
 * Starts a process of `program` for each of `configs`, which is what it is told; `folder` is where they write down what they let pass.
 */
export async function startPlatform(configs, folder, program = payerProgram) {
  const processes = await Promise.all(
    configs.map((config, index) =>
      startProcess({ program, config: { ...config, log: path.join(folder, `passes-${index}.log`) } }),
    ),
  );
  return {
    /** The base URL of one of them, or undefined while all are down. */
    anyUrl(random) {
      const first = random.below(processes.length);
      const order = [...processes.slice(first), ...processes.slice(0, first)];
      return order.map((payer) => payer.url()).find((url) => url !== undefined);
    },
    kill: (index) => processes[index].kill(),
    stop: (index, ms) => processes[index].stop(ms),
    end: () => Promise.all(processes.map((payer) => payer.end())),
  };
}

async function startProcess(told) {
  let current = await launch(told);
  return {
    url: () => current?.url,
    /** The process dies at once, and another one takes its place. */
    async kill() {
      const { child } = current;
      current = undefined;
      child.kill("SIGKILL");
      await once(child, "exit");
      current = await launch(told);
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

async function launch({ program, config }) {
  const child = fork(program, {
    // Lost leases are what the soak is about.
    execArgv: ["--disable-warning=CountersignWarning"],
    env: { ...process.env, NODE_ENV: "test", SOAK_PAYER: JSON.stringify(config) },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const port = await new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message.port));
    child.once("exit", (code, signal) => reject(new Error(`a payer ended at its start: ${code ?? signal}`)));
  });
  return { child, url: `http://127.0.0.1:${port}` };
}
