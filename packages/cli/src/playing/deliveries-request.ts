import {
  deliveryStates,
  isSendErrorCode,
  sendRequest,
  type Delivery,
  type DeliveryFilter,
} from "@countersign/sandbox";
import { joinServiceUrl } from "@countersign/service-client";
import { z } from "zod";
import { UsageError } from "../command-io.ts";
import { messageOf } from "../thrown.ts";

/** The sandbox answered, and not with deliveries. */
export class DeliveriesAnswerError extends Error {
  override readonly name: string = "DeliveriesAnswerError";
}

/** Where the deliveries are read. */
export interface DeliveriesRequest {
  /** Address of the sandbox: https, or http on this machine. */
  readonly url: string;
  readonly apiKey: string;
  readonly timeoutMs: number;
  /** Issuer certificates in PEM form. Default those of Node. */
  readonly ca?: Buffer | undefined;
  readonly filter: DeliveryFilter;
}

/** Makes a function that reads the deliveries of a sandbox. Throws a UsageError, which does not show the API key. */
export function deliveriesReader({
  url,
  apiKey,
  timeoutMs,
  ca,
  filter,
}: DeliveriesRequest): () => Promise<Delivery[]> {
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new UsageError("--api-key: expected printable ASCII without spaces");
  }
  const pathAndQuery = `/sandbox/deliveries?${queryOf(filter)}`;
  const target = targetUrl(url, pathAndQuery);
  const request = {
    method: "GET",
    url: target,
    target: target.slice(target.indexOf("/", "https://".length)),
    headers: { Accept: "application/json", "X-API-KEY": apiKey },
    bodyBytes: Buffer.alloc(0),
  };
  return async () => {
    const { status, body, bodyTruncated } = await sendRequest(request, { timeoutMs, ca, bodyLimitBytes });
    if (status === 401) throw new DeliveriesAnswerError("the sandbox refuses the API key (status 401)");
    if (status !== 200)
      throw new DeliveriesAnswerError(`no deliveries there (status ${status}); check --url`);
    if (bodyTruncated) throw new DeliveriesAnswerError("more deliveries than can be shown; lower --limit");
    return parseDeliveries(body);
  };
}

const bodyLimitBytes = 64 * 1024 * 1024;

function queryOf({ state, eventId, limit }: DeliveryFilter): string {
  const query = new URLSearchParams();
  if (state !== undefined) query.set("state", state);
  if (eventId !== undefined) query.set("event_id", eventId);
  if (limit !== undefined) query.set("limit", String(limit));
  return query.toString();
}

function targetUrl(url: string, pathAndQuery: string): string {
  try {
    return joinServiceUrl(url, pathAndQuery, { subject: "--url", allowLoopbackHttp: true });
  } catch (error) {
    throw new UsageError(messageOf(error), { cause: error });
  }
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

function parseDeliveries(body: string): Delivery[] {
  try {
    return answer.parse(JSON.parse(body)).deliveries;
  } catch (error) {
    throw new DeliveriesAnswerError("what answers there is no sandbox; check --url", { cause: error });
  }
}
