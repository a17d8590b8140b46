// Processes and folders that go with the test process, also when it is killed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

let reaper;
let charges = 0;

/** Spawns a process that ends with this one at the latest. */
export function spawnPrivate(command, args, options = {}) {
  const child = spawn(command, args, options);
  if (child.pid === undefined) return child;
  const { pid } = child;
  tellReaper({ kind: "process", value: pid, add: true });
  child.once("exit", () => tellReaper({ kind: "process", value: pid, add: false }));
  return child;
}

/** A folder of the given owner in the folder for temporary files. */
export function privateFolder(purpose, owner) {
  const folder = mkdtempSync(path.join(tmpdir(), `countersign-${purpose}-`));
  if (owner?.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  tellReaper({ kind: "folder", value: folder, add: true });
  return {
    path: folder,
    remove() {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      tellReaper({ kind: "folder", value: folder, add: false });
    },
  };
}

/**
 * Starts a server whose output goes to a file in `folder`, and waits until `isReady` gives true. Throws with the end of that
 * output when it ends before or is not ready within `withinMs`.
 */
export async function startServer({ command, args, folder, owner, isReady, withinMs = 20_000 }) {
  const log = path.join(folder, "output.log");
  const output = openSync(log, "a");
  const child = spawnPrivate(command, args, { ...owner, cwd: folder, stdio: ["ignore", output, output] });
  closeSync(output);
  const failed = new Promise((_, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${command} ended with ${code}\n${tailOf(log)}`)));
  });
  const ready = new AbortController();
  try {
    await Promise.race([failed, untilReady(isReady, ready.signal, withinMs)]);
  } catch (error) {
    await endProcess(child, "SIGKILL");
    throw error;
  } finally {
    ready.abort();
  }
  failed.catch(() => {});
  // A test that forgets to close it must not keep jest from ending: the reaper does the rest.
  child.unref();
  return child;
}

/** Signals the process and waits for its end; SIGKILL when it is not gone after ten seconds. */
export async function endProcess(child, signal) {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const exit = once(child, "exit");
  child.kill(signal);
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await exit;
  clearTimeout(timer);
}

/** A port of the loopback address that nobody listens on now. */
export async function freePort() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Sends bytes and gives what came back once `isEnough` says so; undefined when nobody answers within `timeoutMs`. */
export function ask({ host, port, request, isEnough, timeoutMs = 1_000 }) {
  return new Promise((resolve) => {
    const chunks = [];
    const socket = connect({ host, port });
    const finish = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(timeoutMs, () => finish());
    socket.once("connect", () => socket.write(request));
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const answer = Buffer.concat(chunks);
      if (isEnough(answer)) finish(answer);
    });
    socket.once("error", () => finish());
    socket.once("close", () => finish());
  });
}

async function untilReady(isReady, signal, withinMs) {
  const end = Date.now() + withinMs;
  while (!(await isReady())) {
    if (signal.aborted) return;
    if (Date.now() > end) throw new Error(`the server was not ready within ${withinMs / 1_000} seconds`);
    await sleep(20);
  }
}

function tailOf(log) {
  return readFileSync(log, "utf8").split("\n").slice(-15).join("\n");
}

function tellReaper(charge) {
  charges += charge.add ? 1 : -1;
  reaper ??= startReaper();
  reaper.stdin.write(`${JSON.stringify(charge)}\n`);
  if (charges > 0) return;
  reaper.stdin.end();
  reaper = undefined;
}

function startReaper() {
  const script = fileURLToPath(new URL("reaper.mjs", import.meta.url));
  // In a process group of its own: a Ctrl-C must not end it before its work.
  const child = spawn(process.execPath, [script], { detached: true, stdio: ["pipe", "ignore", "inherit"] });
  child.unref();
  child.stdin.unref();
  child.stdin.on("error", () => {});
  return child;
}
