import type { Built } from "@countersign/core/internal";
import { fork } from "node:child_process";
import { statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { memberOf, UsageError } from "../command-io.ts";
import { oneLine } from "../operator/store-failure.ts";
import type { MountedGuard } from "./express-stack.ts";
import type { EarlyHook } from "./fastify-hooks.ts";

export type ProxyTrust = "nobody" | "proxies" | "everybody" | "misread";

export interface AppFacts {
  readonly kind: "Express" | "Fastify" | "unknown";
  readonly built: readonly Built[];
  readonly guards: readonly MountedGuard[];
  readonly earlyHooks: readonly EarlyHook[];
  /** Undefined if it cannot be seen; of Fastify, anything but `everybody`. */
  readonly trust: ProxyTrust | undefined;
  readonly listens: boolean;
  readonly fault: AppFault | undefined;
}

export interface AppFault {
  readonly message: string;
  readonly factory?: string | undefined;
  readonly option?: string | undefined;
}

const inspector = fileURLToPath(new URL("../../dist/doctor/inspect-app.js", import.meta.url));
const maxStderrLength = 4000;

/**
 * Loads an app's module in its own process, which listens nowhere. Throws a UsageError if the file is missing; a module that fails, hangs
 * or exits is a fault in the facts.
 */
export async function askApp(file: string, timeoutMs: number): Promise<AppFacts> {
  const absolute = path.resolve(file);
  if (statSync(absolute, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new UsageError(`--app ${file}: is no file`);
  }
  const child = fork(inspector, [absolute], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { ...process.env, COUNTERSIGN_STDERR: "off" },
  });
  let stderr = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-maxStderrLength);
  });
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<AppFacts>((resolve) => {
      const fail = (message: string): void => resolve({ ...nothing, fault: { message } });
      timer = setTimeout(() => fail(`it was not loaded within ${timeoutMs} ms`), timeoutMs);
      child.on("error", ({ message }) => fail(message));
      child.on("exit", (code) => fail(endOf(code, stderr)));
      child.on("message", (message) => {
        if (isFacts(message)) resolve(message);
      });
    });
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
}

const nothing: AppFacts = {
  kind: "unknown",
  built: [],
  guards: [],
  earlyHooks: [],
  trust: undefined,
  listens: false,
  fault: undefined,
};

function endOf(code: number | null, stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const said = lines.find((line) => /^\w*Error\b/.test(line.trim())) ?? lines.at(-1);
  return `it ended its process with ${code ?? "a signal"}${said === undefined ? "" : `: ${oneLine(said)}`}`;
}

// We own the process, but the app can send messages too.
function isFacts(message: unknown): message is AppFacts {
  return ["built", "guards", "kind"].every((name) => memberOf(message, name) !== undefined);
}
