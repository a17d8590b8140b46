import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery } from "@countersign/sandbox";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { jsonDocument } from "../json-output.ts";
import { printable } from "../printable.ts";
import { happeningLine } from "./deliveries-report.ts";
import { deliveriesOf, deliveriesReader } from "./deliveries-request.ts";
import {
  failingInOneLine,
  sandboxApi,
  SandboxAnswerError,
  type SandboxApi,
  type SandboxApiFlags,
} from "./sandbox-api.ts";
import { parseData, sampleDataOf } from "./webhook-input.ts";

/** The flags of `countersign trigger` and of `countersign resend`. */
export interface WaitingFlags extends SandboxApiFlags {
  readonly wait: string;
  readonly json?: boolean | undefined;
}

/** The flags of `countersign trigger`. */
export interface TriggerFlags extends WaitingFlags {
  readonly data?: string | undefined;
  readonly eventId?: string | undefined;
}

/** Has a sandbox send one event to every endpoint, and says what came of it. Throws a UsageError before anything is sent. */
export async function runTrigger(type: string, flags: TriggerFlags, io: CommandIo): Promise<ExitCode> {
  const event = {
    type,
    data: flags.data === undefined ? sampleDataOf(type) : parseData(flags.data),
    ...(flags.eventId === undefined ? {} : { event_id: flags.eventId }),
  };
  const waitMs = waitOf(flags);
  const api = sandboxApi(flags);
  return await failingInOneLine(io, async () => {
    const [eventId = ""] = eventIdsOf(await api.post("/sandbox/events", event));
    if (flags.json !== true) io.writeOut(`triggered ${printable(type)}, event_id ${printable(eventId)}\n`);
    const first = await settled(deliveriesReader(api, { eventId }), [], waitMs);
    return report({ event: { type, event_id: eventId }, deliveries: first }, flags, io);
  });
}

/** Has a sandbox send deliveries again, and says what came of it. Throws a UsageError before anything is sent. */
export async function runResend(id: string, flags: WaitingFlags, io: CommandIo): Promise<ExitCode> {
  const waitMs = waitOf(flags);
  const api = sandboxApi(flags);
  return await failingInOneLine(io, async () => {
    const before = deliveriesOf(await api.post("/sandbox/deliveries/resend", { id: id.replace(/^#/, "") }));
    const deliveries = await settled(() => readAgain(api, before), before, waitMs);
    return report({ deliveries }, flags, io);
  });
}

function waitOf({ wait }: WaitingFlags): number {
  return parseInteger("--wait", wait, { min: 0, max: 600_000 });
}

async function readAgain(api: SandboxApi, before: readonly Delivery[]): Promise<Delivery[]> {
  const [eventId] = before[0]?.eventIds ?? [];
  const ids = new Set(before.map(({ id }) => id));
  const all = await deliveriesReader(api, { eventId, limit: 9999 })();
  return all.filter(({ id }) => ids.has(id));
}

const pauseMs = 100;

/** Reads until each delivery has been tried once more than before, or the time is over. */
async function settled(
  read: () => Promise<Delivery[]>,
  before: readonly Delivery[],
  waitMs: number,
): Promise<readonly Delivery[]> {
  const tries = new Map(before.map(({ id, attempts }) => [id, attempts.length]));
  const endsAtMs = performance.now() + waitMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one reading after the other
    const deliveries = await read();
    const waits = deliveries.some(({ id, attempts }) => attempts.length <= (tries.get(id) ?? 0));
    // Events may wait for others: until then there is no delivery at all.
    if ((!waits && deliveries.length > 0) || performance.now() >= endsAtMs) return deliveries;
    // oxlint-disable-next-line no-await-in-loop -- the pause between two readings
    await sleep(pauseMs);
  }
}

interface Sent {
  readonly event?: { readonly type: string; readonly event_id: string };
  readonly deliveries: readonly Delivery[];
}

function report(sent: Sent, { json, wait }: WaitingFlags, io: CommandIo): ExitCode {
  const { deliveries } = sent;
  const delivered = deliveries.length > 0 && deliveries.every(isDelivered);
  if (json === true) io.writeOut(jsonDocument({ ...sent, delivered }));
  else if (deliveries.length === 0)
    io.writeOut(`no delivery within ${wait} ms: is an endpoint registered?\n`);
  else io.writeOut(deliveries.map(happeningLine(io)).join(""));
  return delivered ? exitCodes.asExpected : exitCodes.otherwise;
}

// Of one that was sent again although it was delivered before, the last answer counts.
function isDelivered({ attempts }: Delivery): boolean {
  const { status = 0 } = attempts.at(-1) ?? {};
  return status >= 200 && status <= 299;
}

function eventIdsOf(document: unknown): string[] {
  const ids =
    typeof document === "object" && document !== null && "event_ids" in document ? document.event_ids : [];
  if (Array.isArray(ids) && ids.length > 0 && ids.every((id) => typeof id === "string")) return ids;
  throw new SandboxAnswerError("what answers there is no sandbox; check --url");
}
