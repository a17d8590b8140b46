import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "@jest/globals";
import { endProcess } from "./private-process.mjs";

const idle = "setInterval(() => {}, 1000)";
const started: ChildProcess[] = [];

afterEach(() => Promise.all(started.splice(0).map((child) => endProcess(child, "SIGKILL"))));

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function until(check: () => boolean): Promise<void> {
  for (const end = Date.now() + 5_000; !check(); await sleep(20)) {
    if (Date.now() > end) throw new Error("did not happen within five seconds");
  }
}

/** A process that starts private things, says which, and goes on. */
async function owner(): Promise<{ owner: ChildProcess; pid: number; folder: string }> {
  const kit = fileURLToPath(new URL("private-process.mjs", import.meta.url));
  const script = `
    import { privateFolder, spawnPrivate } from ${JSON.stringify(kit)};
    const folder = privateFolder("test");
    const child = spawnPrivate(process.execPath, ["-e", ${JSON.stringify(idle)}], { stdio: "ignore" });
    console.log(JSON.stringify({ pid: child.pid, folder: folder.path }));
    ${idle}`;
  const process_ = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(process_);
  const [line] = (await once(process_.stdout, "data")) as [Buffer];
  return { owner: process_, ...(JSON.parse(line.toString()) as { pid: number; folder: string }) };
}

describe("spawnPrivate and privateFolder", () => {
  test.each(["SIGKILL", "SIGTERM"] as const)("go when their process ends by %s", async (signal) => {
    const { owner: parent, pid, folder } = await owner();
    expect(isAlive(pid)).toBe(true);
    expect(existsSync(folder)).toBe(true);
    parent.kill(signal);
    await until(() => !isAlive(pid) && !existsSync(folder));
  });

  test("end also a child that is stopped", async () => {
    const { owner: parent, pid } = await owner();
    process.kill(pid, "SIGSTOP");
    parent.kill("SIGKILL");
    await until(() => !isAlive(pid));
  });
});
