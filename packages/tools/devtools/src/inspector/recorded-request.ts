import { isGuardError, type GuardEvent, type Verdict } from "@countersign/core";
import { capturedRawBody, receivedRequests } from "@countersign/core/internal";
import { marginBytes } from "../loopback/masking.ts";
import { isTold, recordError, type RecordedError } from "./recorded-error.ts";
import type { AnswerBody } from "./answer-body.ts";
import type { explainPayload } from "@countersign/cli/explain";

type SchemaFault = Parameters<typeof explainPayload>[1][number];

export interface RecordedVerdict extends Verdict {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Only of a GuardError, which shows no secret. */
  readonly message: string | undefined;
}

export interface LifeEntry {
  readonly at: number;
  readonly what: "claim" | "event" | "lease-lost" | "notice" | "settled" | "store" | "wait";
  readonly outcome?: string | undefined;
  readonly durationMs?: number | undefined;
  readonly text: string;
}

/** An event of a webhook; its texts are escaped. */
export interface SeenEvent {
  readonly type: string;
  readonly eventId: string;
  readonly webhookId: string;
}

/** Does not reference the request. */
export interface RecordedRequest {
  readonly id: number;
  readonly at: number;
  /** performance.now() at the start of its first guard. */
  readonly startedAtMs: number;
  readonly method: string;
  readonly target: string;
  readonly rawHeaders: readonly string[];
  readonly scheme: "http" | "https" | undefined;
  readonly clientAddress: string | undefined;
  readonly peer: string | undefined;
  /** The first bytes, {@link marginBytes} more than are shown; undefined if no check has read them. */
  body: Buffer | undefined;
  bodyBytes: number;
  readonly verdicts: RecordedVerdict[];
  readonly life: LifeEntry[];
  readonly errors: RecordedError[];
  readonly events: SeenEvent[];
  /** Of its last verdict that has one. */
  idempotencyKey: string | undefined;
  /** Undefined until it has left, and where node:http did not send it. */
  answer: Pick<AnswerBody, "body" | "bytes"> | "encoded" | undefined;
  faults: readonly SchemaFault[];
  outcome: Verdict["outcome"];
  status: number | undefined;
  durationMs: number | undefined;
}

// Node bounds both; a constructed Request does not.
const maxHeaderTexts = 2000;
const maxHeaderLength = 65_536;
const maxVerdicts = 100;
const maxLife = 200;
const maxText = 512;
const maxFaults = 20;
const maxErrors = 10;
const maxEvents = 20;

export function recordRequest(id: number, at: number, { req, durationMs }: GuardEvent): RecordedRequest {
  const received: Received = receivedRequests.get(req) ?? membersOf(req);
  return {
    id,
    at,
    startedAtMs: performance.now() - durationMs,
    method: textOf(() => received.method)?.slice(0, maxText) ?? "",
    target: textOf(() => received.target)?.slice(0, maxHeaderLength) ?? "",
    rawHeaders: headersOf(received.rawHeaders),
    scheme: attempt(() => received.scheme),
    clientAddress: textOf(() => received.clientAddress),
    peer: textOf(() => Object(Object(req).socket).remoteAddress),
    body: undefined,
    bodyBytes: 0,
    verdicts: [],
    life: [],
    errors: [],
    events: [],
    idempotencyKey: undefined,
    answer: undefined,
    faults: [],
    outcome: "pass",
    status: undefined,
    durationMs: undefined,
  };
}

interface Received {
  readonly method?: unknown;
  readonly target?: unknown;
  readonly rawHeaders?: unknown;
  readonly scheme?: "http" | "https" | undefined;
  readonly clientAddress?: unknown;
}

// No adapter made it: for example the literal of a queue consumer.
function membersOf(req: object): Received {
  const { method, target, originalUrl, url, rawHeaders }: Readonly<Record<string, unknown>> = Object(req);
  return { method, target: target ?? originalUrl ?? url, rawHeaders };
}

function headersOf(rawHeaders: unknown): readonly string[] {
  if (!Array.isArray(rawHeaders)) return [];
  const kept: string[] = [];
  let length = 0;
  for (let index = 0; index + 1 < rawHeaders.length && index < maxHeaderTexts; index += 2) {
    const line = [String(rawHeaders[index]), String(rawHeaders[index + 1])];
    length += line.join("").length;
    if (length > maxHeaderLength) break;
    kept.push(...line);
  }
  return kept;
}

export function addVerdict(
  record: RecordedRequest,
  at: number,
  event: GuardEvent,
): RecordedVerdict | undefined {
  if (record.verdicts.length >= maxVerdicts) return undefined;
  const { req: _req, error, ...verdict } = event;
  const known = isGuardError(error) ? error : undefined;
  const added: RecordedVerdict = {
    ...verdict,
    at,
    message: known?.message.slice(0, maxText),
  };
  record.verdicts.push(added);
  record.idempotencyKey = verdict.idempotencyKey ?? record.idempotencyKey;
  if (order.indexOf(verdict.outcome) > order.indexOf(record.outcome)) record.outcome = verdict.outcome;
  if (record.status === undefined) record.durationMs = (record.durationMs ?? 0) + event.durationMs;
  const faults: unknown = known?.problem["errors"];
  if (Array.isArray(faults)) record.faults = faults.slice(0, maxFaults).filter(isFault);
  return added;
}

const order = ["pass", "reject", "error"] as const;

function isFault(value: unknown): value is SchemaFault {
  const { pointer, code, detail }: Readonly<Record<string, unknown>> = Object(value);
  return [pointer, code, detail].every((text) => typeof text === "string");
}

export function captureBody(record: RecordedRequest, req: object, limitBytes: number): void {
  if (record.body !== undefined) return;
  const bytes = capturedRawBody(req);
  if (bytes === undefined) return;
  record.bodyBytes = bytes.length;
  const most = limitBytes + marginBytes;
  // A subarray would keep the whole body.
  record.body = bytes.length > most ? Buffer.from(bytes.subarray(0, most)) : bytes;
}

/** False if the record is full. */
export function addLife(record: RecordedRequest, entry: LifeEntry): boolean {
  if (record.life.length >= maxLife) return false;
  record.life.push({ ...entry, text: entry.text.slice(0, maxText) });
  return true;
}

/** False for one that says no more than its refusal, and if the record is full. */
export function addError(record: RecordedRequest, at: number, from: string, error: unknown): boolean {
  if (record.errors.length >= maxErrors || !isTold(error)) return false;
  record.errors.push(recordError(at, from, error));
  return true;
}

export function addEvent(record: RecordedRequest, { type, eventId, webhookId }: SeenEvent): void {
  if (record.events.length < maxEvents) record.events.push({ type, eventId, webhookId });
}

function textOf(read: () => unknown): string | undefined {
  const text = attempt(read);
  return typeof text === "string" ? text : undefined;
}

// With a proxy setting that trusts everybody, the address and scheme throw.
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
