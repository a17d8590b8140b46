import { deliveryStates, isSendErrorCode, type Delivery, type DeliveryFilter } from "@countersign/sandbox";
import { z } from "zod";
import { SandboxAnswerError, type SandboxApi } from "./sandbox-api.ts";

/** Makes a function that reads the deliveries of a sandbox. */
export function deliveriesReader(api: SandboxApi, filter: DeliveryFilter): () => Promise<Delivery[]> {
  const path = `/sandbox/deliveries?${queryOf(filter)}`;
  return async () => deliveriesOf(await api.get(path));
}

function queryOf({ state, eventId, limit }: DeliveryFilter): string {
  const query = new URLSearchParams();
  if (state !== undefined) query.set("state", state);
  if (eventId !== undefined) query.set("event_id", eventId);
  if (limit !== undefined) query.set("limit", String(limit));
  return query.toString();
}

const attempt = z.object({
  at: z.number(),
  status: z.number().optional(),
  error: z.custom<NonNullable<Delivery["attempts"][number]["error"]>>(isSendErrorCode).optional(),
  durationMs: z.number(),
});

const answer = z.object({
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

/** Reads `{ deliveries }`. Throws a SandboxAnswerError for anything else. */
export function deliveriesOf(document: unknown): Delivery[] {
  const { success, data, error } = answer.safeParse(document);
  if (success) return data.deliveries;
  throw new SandboxAnswerError("what answers there is no sandbox; check --url", { cause: error });
}
