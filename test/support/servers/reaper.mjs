// Ends what a test process leaves behind: reaper.mjs is told on stdin of processes and folders, and acts when stdin ends, which
// it does however that process dies, also by SIGKILL.
import { rmSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const graceMs = 1_000;
const pids = new Set();
const folders = new Set();

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, value, add } = JSON.parse(line);
  const known = kind === "process" ? pids : folders;
  if (add) known.add(value);
  else known.delete(value);
}
signalAll("SIGCONT");
// PostgreSQL ends its children on SIGQUIT; after SIGKILL they would stay until they notice.
signalAll("SIGQUIT");
for (const end = Date.now() + graceMs; pids.size > 0 && Date.now() < end;) {
  await sleep(20);
  signalAll(0);
}
signalAll("SIGKILL");
for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });

function signalAll(signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      pids.delete(pid);
    }
  }
}
