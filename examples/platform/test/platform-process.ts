import { spawn, type ChildProcess } from "node:child_process";

export interface Captured {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** The exit code, or the signal that ended the process. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

export interface CaptureOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

const processes = new Set<Captured>();

/** Starts a process in a group of its own; `killAll` ends what a test has left. */
export function capture(file: string, args: readonly string[], { env, cwd }: CaptureOptions = {}): Captured {
  const child = spawn(file, args, {
    cwd,
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(signal ?? code));
  });
  const captured: Captured = { child, stdout: () => stdout, stderr: () => stderr, ended };
  processes.add(captured);
  void ended.finally(() => processes.delete(captured)).catch(() => {});
  return captured;
}

/** Sends a signal to the process and everything that it has started. */
export function signalGroup({ child }: Captured, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is gone already.
  }
}

export async function killAll(): Promise<void> {
  const left = [...processes];
  for (const captured of left) signalGroup(captured, "SIGKILL");
  await Promise.all(left.map(({ ended }) => ended));
}

/** Waits for `listening on <url>` on stdout. */
export async function listeningUrl(captured: Captured, timeoutMs = 60_000): Promise<string> {
  const end = Date.now() + timeoutMs;
  while (Date.now() < end && captured.child.exitCode === null && captured.child.signalCode === null) {
    const url = /^listening on (?<url>https?:\/\/\S+)/m.exec(captured.stdout())?.groups?.["url"];
    if (url !== undefined) return url;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it does not listen: ${captured.stderr()}`);
}
