import { setTimeout as sleep } from "node:timers/promises";
import { PayoutSendError, sendRequest } from "@countersign/devtools/sandbox";
import { deliveryStates } from "@countersign/devtools/internal";
import { z } from "zod";
import type { CommandIo, ExitCode, Texts } from "../command-io.ts";
import { CommandError, exitCodes, memberOf, UsageError } from "../command-io.ts";
import { assertHttpAllowed, parseInteger } from "../input.ts";
import { jsonDocument, printable } from "../output.ts";
import { memberRows, rowLines } from "./sent-members.ts";
import { happeningLine, type Happening } from "./sandbox.ts";
import { sendOptionsOf, type TransportFlags } from "./transport.ts";
import { parseData, sampleDataOf } from "./webhook.ts";

type PayoutAnswer = Awaited<ReturnType<typeof sendRequest>>;

export interface TriggerFlags
  extends Pick<TransportFlags, "url" | "timeout" | "ca" | "allowHttp" | "json">, Texts<"data" | "eventId"> {
  readonly apiKey: string;
  readonly wait: string;
}

/** Makes a sandbox send one event to every endpoint. Throws a UsageError before anything is sent. */
export async function runTrigger(type: string, flags: TriggerFlags, io: CommandIo): Promise<ExitCode> {
  const { json, eventId } = flags;
  const data = flags.data === undefined ? sampleDataOf(type) : parseData(flags.data);
  const text = JSON.stringify({ data });
  const event = {
    type,
    data,
    ...(eventId === undefined ? {} : { event_id: eventId }),
  };
  const waitMs = parseInteger("--wait", flags.wait, { min: 0, max: 600_000 });
  const ask = sandboxApi(flags);
  const sent = read(notified, await ask("POST", "/sandbox/events", event));
  const [event_id] = sent.event_ids;
  if (json !== true) {
    const lines = [
      `triggered ${printable(type)}, event_id ${printable(event_id)}`,
      ...rowLines(memberRows(text)),
    ];
    io.writeOut(lines.map((line) => `${line}\n`).join(""));
  }
  const path = `/sandbox/deliveries?event_id=${encodeURIComponent(event_id)}`;
  const deliveries = await attempted(async () => read(listed, await ask("GET", path)).deliveries, waitMs);
  const delivered = deliveries.length > 0 && deliveries.every(({ state }) => state === "delivered");
  if (json === true) io.writeOut(jsonDocument({ event: { type, event_id }, deliveries, delivered }));
  else if (deliveries.length === 0)
    io.writeOut(`no delivery within ${waitMs} ms: is an endpoint registered?\n`);
  else io.writeOut(deliveries.map(happeningLine(io)).join(""));
  return delivered ? exitCodes.asExpected : exitCodes.otherwise;
}

const pauseMs = 100;
// Decoded; a sandbox's answer is never longer.
const answerLimitBytes = 16 * 1024 * 1024;

/** Polls until each delivery has been tried, or the time is over. */
async function attempted(list: () => Promise<readonly Happening[]>, waitMs: number) {
  const endsAtMs = performance.now() + waitMs;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- one reading after the other
    const deliveries = await list();
    // Events may wait for others; until then there is no delivery.
    const isDone = deliveries.length > 0 && deliveries.every(({ attempts }) => attempts.length > 0);
    if (isDone || performance.now() >= endsAtMs) return deliveries;
    // oxlint-disable-next-line no-await-in-loop -- the pause between two readings
    await sleep(pauseMs);
  }
}

type Ask = (method: "GET" | "POST", path: string, body?: object) => Promise<unknown>;

/** Throws a UsageError, which does not show the API key. */
function sandboxApi({ url, apiKey, allowHttp, timeout, ca }: TriggerFlags): Ask {
  if (!/^[\x21-\x7e]+$/.test(apiKey)) {
    throw new UsageError("--api-key: expected printable ASCII without spaces");
  }
  if (!URL.canParse(url) || !/^https?:\/\/[^@?#]*$/i.test(url))
    throw new UsageError("--url: expected http://host or https://host, without credentials and query");
  assertHttpAllowed("--url", url, allowHttp);
  const { origin, pathname } = new URL(url);
  const options = { ...sendOptionsOf({ timeout, ca }), bodyLimitBytes: answerLimitBytes };
  return async (method, path, body) => {
    const target = pathname.replace(/\/$/, "") + path;
    const request = {
      method,
      url: origin + target,
      target,
      headers: { Accept: "application/json", "X-API-KEY": apiKey, "Content-Type": "application/json" },
      bodyBytes: Buffer.from(body === undefined ? "" : JSON.stringify(body), "utf8"),
    };
    try {
      return documentOf(await sendRequest(request, options));
    } catch (error) {
      if (!(error instanceof PayoutSendError)) throw error;
      throw new CommandError(error.message, exitCodes.unreachable, { cause: error });
    }
  };
}

function documentOf({ status, body, bodyTruncated }: PayoutAnswer): unknown {
  if (status === 401) throw otherwise("the sandbox refuses the API key (status 401)");
  if (bodyTruncated)
    throw otherwise("what answers there is no sandbox: its answer does not end; check --url");
  const document = parsed(body);
  if (status >= 200 && status <= 299 && document !== undefined) return document;
  // A sandbox's problem details have a code; another server's may say anything.
  const detail = memberOf(document, "code") === undefined ? undefined : memberOf(document, "detail");
  if (typeof detail === "string")
    throw otherwise(`the sandbox answers: ${detail.slice(0, 200)} (status ${status})`);
  throw otherwise(`what answers there is no sandbox (status ${status}); check --url`);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function otherwise(message: string): CommandError {
  return new CommandError(message, exitCodes.otherwise);
}

const notified = z.object({ event_ids: z.tuple([z.string()], z.string()) });

const listed = z.object({
  deliveries: z.array(
    z.looseObject({
      id: z.number(),
      eventTypes: z.array(z.string()),
      state: z.enum(deliveryStates),
      nextAttemptAt: z.number().optional(),
      attempts: z.array(
        z.looseObject({ at: z.number(), status: z.number().optional(), error: z.string().optional() }),
      ),
    }),
  ),
});

function read<T>(form: z.ZodType<T>, document: unknown): T {
  const { success, data } = form.safeParse(document);
  if (!success) throw otherwise("what answers there is no sandbox; check --url");
  return data;
}
