import { createHash, createHmac } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import type { ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import {
  signRequest,
  type SignedRequest,
  type SigningPlan,
} from "@countersign/test-support/signers/independent-signer.ts";
import { servicePublicPem } from "@countersign/test-support/signers/test-keys.ts";
import { createStores } from "@countersign/store-sql";
import type { Express } from "express";
import Database from "libsql";
import request from "supertest";
import { openLedger } from "../dist/ledger.js";
import { mountRoutes, type Parts } from "../dist/routes.js";
import { tableOfKeys, tableOfNonces } from "../dist/stores.js";

export const keyid = "service-1";
export const webhookPath = "/webhooks/3f9c2a7be1d04c55";
// TEST CREDENTIALS.
const basicAuth = { username: "service", password: "test-password" };
const secret = "test-secret-of-webhooks";

/** The fields of the proxy in front of the app: who calls, and by https. */
const byProxy = { "X-Forwarded-For": "192.0.2.10", "X-Forwarded-Proto": "https" };

export interface Platform {
  readonly app: Express;
  readonly parts: Parts;
  readonly database: Database.Database;
  payouts(): unknown[];
  events(): unknown[];
}

/** A platform on a database of its own, with one key and one business; `changes` replace parts of it. */
export function platformOn(
  framework: ExpressFactory,
  changes: Partial<Parts> = {},
  file = ":memory:",
): Platform {
  const database = new Database(file);
  const stores = createStores({ database });
  afterTest(() => {
    stores.close();
    database.close();
  });
  const parts: Parts = {
    allow: ["192.0.2.10", "198.51.100.0/28"],
    keys: tableOfKeys(database),
    nonces: tableOfNonces(database),
    stores,
    ledger: openLedger(database),
    webhookPath,
    basicAuth,
    secret,
    ...changes,
  };
  database.prepare("INSERT OR REPLACE INTO keys VALUES (?, ?)").run(keyid, servicePublicPem);
  const business = ["business-1", instruction.beneficiary.iban];
  database.prepare("INSERT OR REPLACE INTO businesses VALUES (?, ?)").run(...business);
  const app = framework().set("trust proxy", "loopback").set("env", "test");
  mountRoutes(app, parts);
  const pluck = (query: string): unknown[] => database.prepare(query).pluck().all();
  return {
    app,
    parts,
    database,
    payouts: () => pluck("SELECT idempotency_key FROM payouts"),
    events: () => pluck("SELECT event_id FROM events"),
  };
}

export const instruction = {
  idempotency_key: "payout-1.funding-1.business-1",
  business_id: "business-1",
  beneficiary: { iban: "DE89370400440532013000", bic: "COBADEFFXXX", name: "Example Trading GmbH" },
  amount: { value: "10.00", currency: "EUR" },
  reference: "Funding",
};

type Fields = Readonly<Record<string, string | undefined>>;

/** A request as it is sent: `fields` beside those of the proxy; undefined takes one out. */
export interface Sent {
  readonly method?: "get" | "post" | "options";
  readonly path: string;
  readonly body: string | Buffer;
  readonly fields: Fields;
}

/** A payout signed by the spec, with node:crypto alone. `fields` replace header fields after the signature was made. */
export function payout(plan: SigningPlan = {}, fields: Fields = {}): Sent {
  const signed = signRequest({ body: JSON.stringify(instruction), keyid, ...plan });
  return { path: signed.path, body: signed.body, fields: { ...fieldsOf(signed), ...fields } };
}

function fieldsOf({ headers }: SignedRequest): Fields {
  const pairs = headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : []));
  return Object.fromEntries(pairs) as Fields;
}

export function sha512Field(body: string): string {
  return `sha-512=:${createHash("sha512").update(body).digest("base64")}:`;
}

const envelope = {
  webhook_id: "wh-1",
  timestamp: "2027-01-15T08:00:00.123456789Z",
  events: [
    {
      event_id: "ev-1",
      timestamp: "2027-01-15T07:59:59.123456789Z",
      type: "buyer.status_changed",
      data: { buyer_id: "b-1", old_status: "PENDING", new_status: "ACTIVE" },
    },
  ],
};

/** A webhook by the spec, with node:crypto alone. */
export function webhook(fields: Fields = {}, body: string = JSON.stringify(envelope), key = secret): Sent {
  const token = Buffer.from(`${basicAuth.username}:${basicAuth.password}`).toString("base64");
  return {
    path: webhookPath,
    body,
    fields: {
      "Content-Type": "application/json",
      Authorization: `Basic ${token}`,
      "X-Payload-Signature": createHmac("sha256", key).update(body).digest("base64"),
      ...fields,
    },
  };
}

export interface Answer {
  readonly status: number;
  /** Of the check that refused the request; undefined where none did. */
  readonly code: string | undefined;
  readonly fields: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends a request through the app, and gives its answer with the code that only the log has. */
export async function send(app: Express, { method = "post", path, body, fields }: Sent): Promise<Answer> {
  const codes: string[] = [];
  const hear = (event: unknown): void => {
    const { code } = event as { readonly code?: string };
    if (code !== undefined) codes.push(code);
  };
  subscribe("countersign:guard", hear);
  try {
    const sending = request(app)[method](path).set(byProxy);
    for (const [name, value] of Object.entries(fields)) {
      if (value === undefined) sending.unset(name);
      else sending.set(name, value);
    }
    // As bytes, which supertest leaves as they are.
    sending.serialize((bytes: unknown) => bytes as string);
    const { status, headers, text } = await (method === "get" ? sending : sending.send(body));
    return { status, code: codes.at(0), fields: headers, text };
  } finally {
    unsubscribe("countersign:guard", hear);
  }
}

type Handle = { readonly name: string };

interface Layer {
  readonly handle: Handle;
  readonly route?: { readonly stack: Layer[] } | undefined;
}

/** All stacks of layers: the app's own, then those of its routes. */
function stacksOf(app: Express): readonly Layer[][] {
  // Express 4 has `_router`, and throws at `router`.
  const { _router: router = app.router } = app as unknown as { readonly _router?: unknown };
  const { stack } = router as { readonly stack: Layer[] };
  return [stack, ...stack.flatMap(({ route }) => (route === undefined ? [] : [route.stack]))];
}

const isNamed =
  (name: string) =>
  ({ handle }: Layer): boolean =>
    handle.name === `${name}Middleware`;

function routesFirst(app: Express): readonly Layer[][] {
  const [own = [], ...routes] = stacksOf(app);
  return [...routes, own];
}

/** Takes a middleware out of the first stack that has it, as if its line were deleted. False if there is none. */
export function takeOut(app: Express, name: string): boolean {
  const stack = routesFirst(app).find((one) => one.some(isNamed(name)));
  // app.all() lists a handler once for each method.
  stack?.splice(0, stack.length, ...stack.filter((layer) => !isNamed(name)(layer)));
  return stack !== undefined;
}

/** Moves a middleware, or adds one of Express, before or after another one on its route. */
export function move(app: Express, moved: string | object, place: "before" | "after", other: string): void {
  const handle =
    typeof moved === "string" ? stacksOf(app).flat().find(isNamed(moved))?.handle : (moved as Handle);
  if (handle === undefined) throw new Error("there is no such middleware to move");
  if (typeof moved === "string") takeOut(app, moved);
  // What is mounted for a whole path comes to the beginning of the route.
  const [whole = [], ...routes] = stacksOf(app);
  const index = whole.findIndex(isNamed(other));
  const target = routes.find((stack) => stack.some(isNamed(other))) ?? routes.find(isPayoutRoute) ?? [];
  const first = target[0];
  if (index >= 0 && first !== undefined) {
    target.unshift(layerOf(first, whole[index]!.handle));
    whole.splice(index, 1);
  }
  const layers = target.flatMap((layer) => {
    if (!isNamed(other)(layer)) return [layer];
    const added = layerOf(layer, handle);
    return place === "before" ? [added, layer] : [layer, added];
  });
  target.splice(0, target.length, ...layers);
}

const isPayoutRoute = (stack: readonly Layer[]): boolean => stack.some(isNamed("rawBody"));

/** A layer as another one of its route, with a handle of its own. */
function layerOf(layer: Layer, handle: Handle): Layer {
  return Object.assign(Object.create(Object.getPrototypeOf(layer) as object) as Layer, layer, { handle });
}
