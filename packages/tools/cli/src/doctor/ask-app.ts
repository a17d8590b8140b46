import type { Built } from "@countersign/core/door";
import { fork } from "node:child_process";
import { statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { memberOf, UsageError } from "../command-io.ts";
import { oneLine } from "../operator/store-failure.ts";
import type { MountedGuard } from "./express-stack.ts";
import type { EarlyHook } from "./fastify-hooks.ts";

export type ProxyTrust = "nobody" | "proxies" | "everybody" | "misread";

/** What is known of an app that was loaded; the process that loads it sends this. */
export interface AppFacts {
  readonly kind: "Express" | "Fastify" | "unknown";
  /** What factories have published, in this order. */
  readonly built: readonly Built[];
  readonly guards: readonly MountedGuard[];
  readonly earlyHooks: readonly EarlyHook[];
  /** Undefined where it does not show; of Fastify, anything but `everybody`. */
  readonly trust: ProxyTrust | undefined;
  readonly listens: boolean;
  readonly fault: AppFault | undefined;
}

/** An error of the app's own code; `option` where it was about an option. */
export interface AppFault {
  readonly message: string;
  readonly factory?: string | undefined;
  readonly option?: string | undefined;
}

const inspector = fileURLToPath(new URL("../../dist/doctor/inspect-app.js", import.meta.url));
const maxStderrLength = 4000;

/**
 * Loads an app's module in a process of its own, which listens nowhere, and returns what is known of it. Throws a UsageError where
 * there is no such file; a module that fails, hangs or ends its process is a fault in the facts.
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

// The process is ours; an app can send to it as well.
function isFacts(message: unknown): message is AppFacts {
  return ["built", "guards", "kind"].every((name) => memberOf(message, name) !== undefined);
}
