import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import type { Environment } from "@countersign/example-settings";

/** A platform in a process of its own, as `npm run platform` starts it. */
export interface DemoPlatform {
  readonly url: string;
  /** The page of its inspector, where INSPECTOR_PORT is set. */
  readonly inspectorUrl: string | undefined;
  readonly pid: number | undefined;
  /** SIGKILL: no chance to write anything. */
  kill(): Promise<void>;
  /** SIGTERM: drains and ends. */
  stop(): Promise<void>;
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<void>;
}

/** Starts a platform, or another example's `program`, and waits until it listens. Throws with what it said when it does not. */
export async function startDemoPlatform(
  env: Environment,
  logFile: string,
  program = "@countersign/example-platform/main",
): Promise<DemoPlatform> {
  const log = openSync(logFile, "a");
  const main = createRequire(import.meta.url).resolve(program);
  // The IPC channel is never used: its end tells the platform that this process is gone.
  const child = spawn(process.execPath, [main], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", log, "ipc"],
  });
  closeSync(log);
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  const { url, inspectorUrl } = await announced(child, logFile);
  return { url, inspectorUrl, pid: child.pid, ended, kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };
}

type Announced = Pick<DemoPlatform, "url" | "inspectorUrl">;

async function announced(child: ChildProcess, logFile: string): Promise<Announced> {
  const failed = once(child, "exit").then(() => {
    throw new DemoStartError(lastWords(logFile));
  });
  return Promise.race([failed, readAnnouncement(child)]);
}

// The line that says where it listens is the last one.
async function readAnnouncement(child: ChildProcess): Promise<Announced> {
  if (child.stdout === null) throw new Error("the platform was started without a pipe");
  let inspectorUrl: string | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const { what, url } = /^(?<what>listening on|inspector at) (?<url>http:\S+)$/.exec(line)?.groups ?? {};
    if (url !== undefined && what === "listening on") return { url, inspectorUrl };
    inspectorUrl ??= url;
  }
  // The exit of the process says why.
  return new Promise(() => {});
}

/** The platform did not start; the message is what it said beside its log. */
export class DemoStartError extends Error {
  override readonly name: string = "DemoStartError";
}

function lastWords(file: string): string {
  const lines = readFileSync(file, "utf8").split("\n");
  const words = lines.filter((line) => line.trim() !== "" && !line.startsWith("{")).slice(-20);
  // Platforms that share a log fail for one reason.
  const different = new Set(words);
  return different.size === 0 ? `the platform did not start, see ${file}` : [...different].join("\n");
}
