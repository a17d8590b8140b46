// Payers as the tests see them: in this process, or in a process of their own that can be killed and stopped. All end with their test.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { AnswerStore, IdempotencyStore } from "@countersign/idempotency";
import { afterEach } from "@jest/globals";
import { buildPayoutRequest, createPayoutInstruction } from "@countersign/devtools/sandbox";
import { close, listen, send, type WireAnswer, type WireRequest } from "../support/servers/http-client.ts";
import { endProcess, spawnPrivate } from "../support/servers/private-process.mjs";
import { serviceKey } from "../support/signers/test-keys.ts";
import { Gates } from "./gates.ts";
import { Lines } from "./lines.ts";
import { createPayer, type PayerConfig, type Point } from "./payer-app.mjs";
import { keyid } from "./payer-transactions.mjs";

/** An answer to a payout. `code` where the problem details have one. */
export interface PayoutAnswer {
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfter: string | undefined;
  /** Of the attempt whose answer it is, where there is one. */
  readonly token: string | undefined;
  readonly isReplayed: boolean;
}

/** Where a payout goes to. */
export interface Target {
  readonly port: number;
  /** Whether the platform wants a signature, a new one each time. */
  readonly wantsSignature?: boolean;
}

export interface RunningPayer extends Target {
  /** Stops the next request that comes to this point. */
  arm(point: Point): void;
  reached(point: Point): Promise<void>;
  go(point: Point): void;
  close(): Promise<void>;
}

export interface PayerProcess extends RunningPayer {
  kill(): Promise<void>;
  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGTERM"): void;
  /** Resolves when it has said that it is draining. */
  draining(): Promise<void>;
  readonly exitCode: Promise<number | null>;
}

const running: RunningPayer[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((payer) => payer.close()));
});

export async function startPayer(
  config: PayerConfig,
  parts: {
    readonly wrapStore?: ((store: IdempotencyStore) => IdempotencyStore) | undefined;
    readonly now?: (() => number) | undefined;
    readonly armed?: readonly Point[];
  } = {},
): Promise<RunningPayer & { readonly store: IdempotencyStore; readonly answers: AnswerStore | undefined }> {
  const { armed = [], ...rest } = parts;
  const gates = new Gates(armed);
  const payer = await createPayer(config, { points: gates, ...rest });
  const { server, port } = await listen(payer.app);
  const started = {
    port,
    wantsSignature: config.publicKey !== undefined,
    store: payer.engine.stores.idempotency,
    answers: payer.answers,
    arm: (point: Point) => gates.arm(point),
    reached: (point: Point) => gates.reached(point),
    go: (point: Point) => gates.go(point),
    async close() {
      await close(server);
      await payer.close();
    },
  };
  running.push(started);
  return started;
}

/** A payer in a process of its own, whose wall clock may go ahead. */
export async function spawnPayer(
  config: PayerConfig,
  {
    armed = [],
    clockShiftMs = 0,
  }: { readonly armed?: readonly Point[]; readonly clockShiftMs?: number } = {},
): Promise<PayerProcess> {
  const flags = clockShiftMs === 0 ? [] : ["--import", script("shift-clock.mjs").href];
  const args = [
    ...flags,
    fileURLToPath(script("payer-process.mjs")),
    JSON.stringify(config),
    JSON.stringify(armed),
  ];
  const child = spawnPrivate(process.execPath, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, CLOCK_SHIFT_MS: String(clockShiftMs) },
  });
  const lines = new Lines(child);
  const started: PayerProcess = {
    port: Number((await lines.next("listening ")).slice("listening ".length)),
    wantsSignature: config.publicKey !== undefined,
    arm: (point) => order(child, "arm", point),
    async reached(point) {
      await lines.next(`reached ${point}`);
    },
    go: (point) => order(child, "go", point),
    close: () => endProcess(child, "SIGKILL"),
    kill: () => endProcess(child, "SIGKILL"),
    signal: (signal) => void child.kill(signal),
    async draining() {
      await lines.next("draining");
    },
    exitCode: once(child, "exit").then(([code]) => code as number | null),
  };
  running.push(started);
  return started;
}

/**
 * What a handler is told to do wrong; with its key's transaction also to `leave a statement` on its way when it fails, to `commit, then fail` (not on SQLite), to `commit early`, before it writes,
 * to `write nothing`.
 */
type HandlerFault =
  | "none"
  | "fail"
  | "refuse"
  | "leave a statement"
  | "commit, then fail"
  | "commit early"
  | "write nothing";

export async function pay(
  { port, wantsSignature = false }: Target,
  key: string,
  { amount = 100, fault = "none" }: { readonly amount?: number; readonly fault?: HandlerFault } = {},
): Promise<PayoutAnswer> {
  const request = wantsSignature ? signedRequest(key, amount, fault) : payoutRequest(key, amount, fault);
  return payoutAnswer(await send(port, request));
}

/**
 * Sends a payout until one has stopped at the point, as the service does: on a busy machine the first connection of a payer can take
 * longer than its store may. Throws on any answer but 503 before.
 */
export async function payTo(
  point: Point,
  payer: RunningPayer,
  ...payout: [key: string, options?: Parameters<typeof pay>[2]]
): Promise<{ readonly answer: Promise<PayoutAnswer> }> {
  const reached = payer.reached(point);
  for (;;) {
    const answer = pay(payer, ...payout);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const early = await Promise.race([reached, answer]);
    if (early === undefined) return { answer };
    if (early.status !== 503) throw new Error(`answered by ${early.status} before it came to ${point}`);
  }
}

/** Begins a payout in a process that is killed at the point, and returns another process. */
export async function killedAt(
  point: Point,
  config: PayerConfig,
  key: string,
  options: Parameters<typeof pay>[2] = {},
): Promise<{ readonly second: PayerProcess; readonly since: number }> {
  const [first, second] = await Promise.all([spawnPayer(config, { armed: [point] }), spawnPayer(config)]);
  const { answer } = await payTo(point, first, key, options);
  const since = performance.now();
  await first.kill();
  const ended = await answer.then(
    ({ status }) => status,
    ({ code }: NodeJS.ErrnoException) => code,
  );
  if (ended !== "ECONNRESET") throw new Error(`the payout ended with ${String(ended)}`);
  return { second, since };
}

export function payoutRequest(key: string, amount = 100, fault = "none") {
  return {
    method: "POST",
    path: "/payouts",
    headers: ["Content-Type", "application/json", "Fault", fault],
    body: Buffer.from(JSON.stringify({ idempotency_key: key, amount })),
  };
}

/** With a nonce of its own. */
export function signedRequest(key: string, amount = 100, fault = "none"): WireRequest {
  const { headers, bodyBytes } = buildPayoutRequest({
    url: "http://127.0.0.1/payouts",
    body: createPayoutInstruction({
      idempotencyKey: key,
      amount: { value: String(amount), currency: "EUR" },
    }),
    headers: { Fault: fault },
    privateKey: serviceKey,
    keyid,
  });
  return { method: "POST", path: "/payouts", headers: Object.entries(headers).flat(), body: bodyBytes };
}

function payoutAnswer({ status, headers, body }: WireAnswer): PayoutAnswer {
  const isProblem = headers["content-type"]?.startsWith("application/problem+json") === true;
  const { code } = (isProblem ? JSON.parse(body) : {}) as { code?: string };
  const { token } = (status === 200 && body !== "" ? JSON.parse(body) : {}) as { token?: string };
  const isReplayed = headers["idempotency-replayed"] !== undefined;
  return { status, code, retryAfter: headers["retry-after"], token, isReplayed };
}

function script(name: string): URL {
  return new URL(name, import.meta.url);
}

function order(child: ChildProcess, kind: "arm" | "go", point: Point): void {
  child.stdin?.write(`${JSON.stringify([kind, point])}\n`);
}
