import { setTimeout as sleep } from "node:timers/promises";
import { deliveryStates, isSendErrorCode } from "@countersign/sandbox/protocol";
import type { Delivery } from "@countersign/sandbox";
import { z } from "zod";
import { exitCodes, type CommandIo, type ExitCode } from "../command-io.ts";
import { parseInteger } from "../input.ts";
import { jsonDocument } from "../json-output.ts";
import { printable } from "../printable.ts";
import { happeningLine } from "./happening-line.ts";
import { failingInOneLine, sandboxApi, SandboxAnswerError, type SandboxApiFlags } from "./sandbox-api.ts";
import { parseData, sampleDataOf } from "./webhook-input.ts";

/** The flags of `countersign trigger`. */
export interface TriggerFlags extends SandboxApiFlags {
  readonly wait: string;
  readonly data?: string | undefined;
  readonly eventId?: string | undefined;
}

/** Has a sandbox send one event to every endpoint, and says what came of it. Throws a UsageError before anything is sent. */
export async function runTrigger(type: string, flags: TriggerFlags, io: CommandIo): Promise<ExitCode> {
  const { json, eventId } = flags;
  const event = {
    type,
    data: flags.data === undefined ? sampleDataOf(type) : parseData(flags.data),
    ...(eventId === undefined ? {} : { event_id: eventId }),
  };
  const waitMs = parseInteger("--wait", flags.wait, { min: 0, max: 600_000 });
  const api = sandboxApi(flags);
  return await failingInOneLine(io, async () => {
    const sent = read(notified, await api.post("/sandbox/events", event));
    const [event_id] = sent.event_ids;
    if (json !== true) io.writeOut(`triggered ${printable(type)}, event_id ${printable(event_id)}\n`);
    const path = `/sandbox/deliveries?event_id=${encodeURIComponent(event_id)}`;
    const deliveries = await attempted(async () => read(listed, await api.get(path)).deliveries, waitMs);
    const delivered = deliveries.length > 0 && deliveries.every(({ state }) => state === "delivered");
    if (json === true) io.writeOut(jsonDocument({ event: { type, event_id }, deliveries, delivered }));
    else if (deliveries.length === 0)
      io.writeOut(`no delivery within ${waitMs} ms: is an endpoint registered?\n`);
    else io.writeOut(deliveries.map(happeningLine(io)).join(""));
    return delivered ? exitCodes.asExpected : exitCodes.otherwise;
  });
}

const pauseMs = 100;

/** Reads until each delivery has been tried, or the time is over. */
async function attempted(
  list: () => Promise<readonly Delivery[]>,
  waitMs: number,
): Promise<readonly Delivery[]> {
  const endsAtMs = performance.now() + waitMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one reading after the other
    const deliveries = await list();
    // Events may wait for others: until then there is no delivery at all.
    const isDone = deliveries.length > 0 && deliveries.every(({ attempts }) => attempts.length > 0);
    if (isDone || performance.now() >= endsAtMs) return deliveries;
    // oxlint-disable-next-line no-await-in-loop -- the pause between two readings
    await sleep(pauseMs);
  }
}

const notified = z.object({ event_ids: z.tuple([z.string()], z.string()) });

const attempt = z.object({
  at: z.number(),
  status: z.number().optional(),
  error: z.custom<NonNullable<Delivery["attempts"][number]["error"]>>(isSendErrorCode).optional(),
  durationMs: z.number(),
});

const listed = z.object({
  deliveries: z.array(
    z.object({
      id: z.number(),
      webhookId: z.string(),
      endpointId: z.string(),
      url: z.string(),
      eventIds: z.array(z.string()),
      eventTypes: z.array(z.string()),
      state: z.enum(deliveryStates),
      createdAt: z.number(),
      nextAttemptAt: z.number().optional(),
      attempts: z.array(attempt),
    }),
  ),
});

/** Reads an answer of a sandbox. Throws a SandboxAnswerError for anything else. */
function read<T>(form: z.ZodType<T>, document: unknown): T {
  const { success, data, error } = form.safeParse(document);
  if (success) return data;
  throw new SandboxAnswerError("what answers there is no sandbox; check --url", { cause: error });
}
