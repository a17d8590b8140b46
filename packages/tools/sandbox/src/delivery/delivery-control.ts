import { maskerOf, type Masker } from "@countersign/inspector/loopback";
import { numberOf, textOf, type DatabaseRow, type Sql } from "../sql.ts";
import { deliveryStateOf, type Delivery, type DeliveryAttempt, type DeliveryState } from "./delivery.ts";
import { backoffMs, type DeliverySender } from "./delivery-sender.ts";
import { oneDelivery } from "./listing.ts";
import type { ResolvedDeliveryOptions } from "./options.ts";
import type { QueueTables } from "./queue-tables.ts";
import { shownAnswerLength, shownHeaders, type WebhookExchange } from "./send-webhook.ts";
import { buildWebhookRequest, type TamperedWebhookPart } from "./webhook-request.ts";

/** What a person does to single deliveries, and sees of them. No answer holds a password or a secret. */
export interface DeliveryControl {
  /** How many there are in each state; paused ones are pending. */
  counts(): Readonly<Record<DeliveryState, number>>;
  /** A copy of a value without the password and the secret of any endpoint, and without a private key, in its texts. */
  readonly mask: Masker;
  /** Everything of one delivery; undefined where there is none of this number. */
  detail(id: number): DeliveryDetail | undefined;
  /** Sends nothing more until it is continued or sent again. False unless it is pending and goes on. */
  pause(id: number): boolean;
  /** What became due meanwhile is sent at once. False unless it is paused. */
  continue(id: number): boolean;
  /** Gives a pending delivery up. False for any other. */
  drop(id: number): boolean;
  /** Sends it once, now, with one part spoilt; its state and schedule stay. False where there is none of this number. */
  spoil(id: number, part: TamperedWebhookPart): Promise<boolean>;
}

/** A delivery with its bytes and its times. */
export interface DeliveryDetail {
  readonly delivery: Delivery;
  readonly request: {
    readonly method: string;
    readonly target: string;
    /** As of an attempt now; the password of Authorization is left out. */
    readonly headers: WebhookExchange["requestHeaders"];
    /** The first 64 KiB, as UTF-8: what the signature is made of. */
    readonly body: string;
    readonly bodyBytes: number;
  };
  /** Milliseconds since 1970. `later` is when further attempts follow at the latest, each after a failure. */
  readonly schedule: { readonly givesUpAt: number; readonly later: readonly number[] };
  /** The newest fifty, with what went over the wire of the newest of all deliveries. */
  readonly attempts: readonly (DeliveryAttempt & Partial<WebhookExchange>)[];
}

/** What {@link createDeliveryControl} works on. */
export interface DeliveryControlInit {
  readonly sql: Sql;
  readonly tables: QueueTables;
  readonly sender: DeliverySender;
  readonly options: ResolvedDeliveryOptions;
  /** What `mask` takes out beside the credentials of the endpoints. */
  readonly secrets: readonly string[];
  readonly clock: () => number;
  /** Hears of each delivery that was changed. */
  readonly changed: (id: number) => void;
}

const shownBodyBytes = 65_536;
const shownAttempts = 50;
const shownSteps = 5;

/** Makes the control of a service; what it does is told to `changed`. */
export function createDeliveryControl(init: DeliveryControlInit): DeliveryControl {
  const { sql, tables, sender, clock, changed } = init;
  const mask = currentMasker(tables, init.secrets);
  const find = (id: number): DatabaseRow | undefined =>
    sql.find(
      "SELECT id, webhook_id, endpoint_id, state, expires_ms, rounds FROM webhook_deliveries WHERE id = :id",
      { id },
    );
  const change = (id: number, allowed: (row: DatabaseRow) => boolean, work: () => void): boolean => {
    const done = sql.atomically(() => {
      const row = find(id);
      if (row === undefined || !allowed(row)) return false;
      work();
      return true;
    });
    if (done) changed(id);
    return done;
  };
  return {
    mask,
    counts() {
      const counts = { pending: 0, delivered: 0, failed: 0 };
      const rows = sql.rows("SELECT state, count(*) AS count FROM webhook_deliveries GROUP BY state");
      for (const row of rows) counts[deliveryStateOf(row)] = numberOf(row, "count");
      return counts;
    },
    detail(id) {
      const row = find(id);
      return row === undefined ? undefined : cut(mask(detailOf(row, oneDelivery(sql, id), init)));
    },
    pause: (id) =>
      change(
        id,
        (row) => isPending(row) && tables.stopOf(id) === undefined,
        () => tables.pause(id),
      ),
    continue: (id) =>
      change(
        id,
        () => tables.stopOf(id) === "paused",
        () => tables.continue(id, Math.floor(clock())),
      ),
    drop: (id) => change(id, isPending, () => tables.drop(id)),
    async spoil(id, part) {
      const row = find(id);
      if (row === undefined) return false;
      const [endpointId, webhookId] = [textOf(row, "endpoint_id"), textOf(row, "webhook_id")];
      await sender.spoil({ id, endpointId, webhookId }, part);
      changed(id);
      return true;
    },
  };
}

function isPending(row: DatabaseRow): boolean {
  return deliveryStateOf(row) === "pending";
}

function detailOf(
  row: DatabaseRow,
  delivery: Delivery,
  { tables, options }: DeliveryControlInit,
): DeliveryDetail {
  const endpoint = tables.endpoint(textOf(row, "endpoint_id"));
  const body = tables.body(textOf(row, "webhook_id"));
  const { method, target, headers } = buildWebhookRequest({ ...endpoint, body });
  const exchanges = tables.exchanges(delivery.id, shownAttempts);
  const newest = delivery.attempts.slice(-shownAttempts);
  return {
    delivery,
    request: {
      method,
      target,
      headers: shownHeaders(headers),
      body: body.subarray(0, shownBodyBytes).toString("utf8"),
      bodyBytes: body.length,
    },
    schedule: {
      givesUpAt: numberOf(row, "expires_ms"),
      later: stepsAfter(delivery, row, options),
    },
    attempts: newest.map((attempt, index) =>
      Object.assign({}, attempt, exchangeOf(exchanges[exchanges.length - 1 - index])),
    ),
  };
}

/** Behind the masking: half a secret at the end of a text would not be found. */
function cut(detail: DeliveryDetail): DeliveryDetail {
  const attempts = detail.attempts.map((attempt) => {
    const { answerBody } = attempt;
    return answerBody === undefined
      ? attempt
      : { ...attempt, answerBody: answerBody.slice(0, shownAnswerLength) };
  });
  return { ...detail, attempts };
}

/** Masks what belongs to the endpoints that there are now; they are only ever added. */
function currentMasker(tables: QueueTables, secrets: readonly string[]): Masker {
  let known: { readonly count: number; readonly mask: Masker } | undefined;
  return (value) => {
    const credentials = tables.registrations();
    if (known?.count !== credentials.length) {
      const texts = [...secrets, ...credentials.map(({ secret }) => secret)];
      known = { count: credentials.length, mask: maskerOf({ credentials, texts }) };
    }
    return known.mask(value);
  };
}

function exchangeOf(text: unknown): Partial<WebhookExchange> {
  if (typeof text !== "string") return {};
  // What is in there was written by this package.
  const exchange: WebhookExchange = JSON.parse(text);
  return exchange;
}

function stepsAfter(
  { nextAttemptAt }: Delivery,
  row: DatabaseRow,
  options: ResolvedDeliveryOptions,
): readonly number[] {
  if (nextAttemptAt === undefined || deliveryStateOf(row) !== "pending") return [];
  const steps: number[] = [];
  let at = nextAttemptAt;
  for (let round = numberOf(row, "rounds"); steps.length < shownSteps; round += 1) {
    at += Math.ceil(backoffMs(round, { ...options, random: () => 0 }));
    if (at > numberOf(row, "expires_ms")) break;
    steps.push(at);
  }
  return steps;
}
