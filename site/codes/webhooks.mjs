import { handledOn } from "./transactions.mjs";
import { guard } from "@countersign/express";
import { webhookPlugin } from "@countersign/fastify";
import { createSqliteStores } from "@countersign/store-sqlite";
import { StatementGate } from "@countersign/idempotency/store";
import { createRedisStores } from "@countersign/store-redis";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { ipAllowlist, liveAllowlist } from "@countersign/ip-allowlist";
import { httpSignatureVerifier, jwksKeys, memoryNonceStore } from "@countersign/http-signature-verify";
import { createSigner, signResponse } from "@countersign/http-signature-verify/sign";
import { payoutEndpoint } from "countersign/payout";
import { verifyBasicAuth, webhookBasicAuth } from "@countersign/webhook-basic-auth";
import { signPayload, signPayloadHeaders, verifyPayload, webhookHmac } from "@countersign/webhook-hmac";
import {
  createWebhookHandler,
  parseWebhookEnvelope,
  receiveWebhook,
  webhookEndpoint,
} from "countersign/webhooks";
import { fastify } from "fastify";
import Database from "libsql";
import {
  answered,
  keyid,
  noticed,
  post,
  privateKey,
  publicKey,
  refusalOf,
  row,
  notice,
  signed,
} from "./provoke.mjs";
import { payoutRequest, payouts } from "./bodies.mjs";

const by = ["webhookEndpoint"];

const secret = "test-secret";
const event = (more = {}) => ({
  event_id: "ev_1",
  timestamp: "2024-01-02T03:04:05.1Z",
  type: "buyer.status_changed",
  data: { buyer_id: "b_1", old_status: "PENDING", new_status: "ACTIVE" },
  ...more,
});
const envelope = (events, more = {}) =>
  JSON.stringify({ webhook_id: "wh_1", timestamp: "2024-01-02T03:04:05.123456789Z", events, ...more });

/** A webhook as the service sends it. */
function webhook(text = envelope([event()]), { headers = {}, ...rest } = {}) {
  const authorization = `Basic ${Buffer.from("service:test-password").toString("base64")}`;
  return post({
    ...rest,
    headers: {
      Authorization: authorization,
      "X-Payload-Signature": signPayload(Buffer.from(text), secret),
      ...headers,
    },
    body: text,
  });
}

const quiet = { onError: () => {} };
const handlerOf = (options = {}, handle = () => {}) => {
  const store = memoryIdempotencyStore();
  return createWebhookHandler({ store, fallback: handle, ...quiet, ...options });
};
const endpoint =
  ({ handler = handlerOf(), ...options } = {}) =>
  (app) =>
    app.use(
      "/",
      webhookEndpoint({
        basicAuth: { username: "service", password: "test-password" },
        hmac: { secret },
        https: { dangerouslyAllowHttp: true },
        hide: false,
        handler,
        ...options,
      }),
    );

/** What `onError` is told of the failure of one event; of the last one, where webhooks come one after the other. */
function failed(options, handle, ...webhooks) {
  return async () => {
    let told;
    const handler = handlerOf({ ...options, onError: (failure) => void (told = failure) }, handle);
    for (const events of webhooks) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await handler.handle(parseWebhookEnvelope(Buffer.from(envelope([events]))));
    }
    const { event_id, type, outcome, error } = told;
    const { code, message } = error;
    return {
      code,
      text: JSON.stringify({ event_id, type, outcome, error: { code, message } }, undefined, 2),
    };
  };
}

const info = (more) =>
  ["redis_version:7.4.1", "maxmemory_policy:noeviction", "aof_enabled:1", "role:master", ...more].join(
    "\r\n",
  );
const redis = (code, change) =>
  noticed(code, async () => {
    // A server without this key, and whose INFO says what `change` does.
    const sendCommand = (command) =>
      command[0] === "INFO" ? change() : Promise.resolve([command.at(-1), ["absent"]]);
    const stores = createRedisStores({ sendCommand });
    await stores.idempotency.read("payout-1");
    stores.close();
  });
const withInfo =
  (...lines) =>
  () =>
    Promise.resolve(
      lines.reduceRight((text, line) => {
        const [name] = line.split(":");
        return text.replace(new RegExp(`^${name}:.*$`, "m"), line);
      }, info([])),
    );

const jwk = { ...publicKey.export({ format: "jwk" }), kid: keyid };
const jwks = (...documents) => {
  const keys = jwksKeys("https://service.example/.well-known/jwks.json", {
    fetch: () => {
      const document = documents.shift();
      return document === undefined
        ? Promise.reject(new Error("connect ECONNREFUSED 192.0.2.1:443"))
        : Promise.resolve(
            new Response(JSON.stringify(document), { headers: { "Content-Type": "application/json" } }),
          );
    },
  });
  return keys;
};
const loaded = (code, ...documents) =>
  noticed(code, async () => {
    const keys = jwks(...documents);
    await keys.ready().catch(() => {});
    keys.close();
  });

/** The refusal of a message by a scheme that names its time or its identifier, but for what `change` makes of its fields. */
const withScheme = (scheme, change, ageSeconds = 0) => {
  const bytes = Buffer.from("{}");
  const key = `whsec_${Buffer.from("a test secret of thirty-two bytes").toString("base64")}`;
  const nowMs = Date.now();
  const timestampSeconds = Math.floor(nowMs / 1000) - ageSeconds;
  const id = scheme === "svix" ? "msg_1" : undefined;
  return refusalOf("webhookHmac", () => {
    const headers = signPayloadHeaders(bytes, key, { scheme, id, timestampSeconds });
    verifyPayload(bytes, { ...headers, ...change }, [key], { scheme, clock: () => nowMs });
  });
};

const listed = (code, ...lists) =>
  noticed(code, async () => {
    const list = liveAllowlist({
      load: () => lists.shift() ?? Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")),
    });
    await list.ready().catch(() => {});
    if (lists.length > 0) await list.refresh();
    list.close();
  });

const signedAnswers =
  (signer, options = {}, text = "{}") =>
  (app) => {
    app.post(
      "/api/v1/transaction",
      signResponse({ signer, ...options }),
      payoutEndpoint(payouts()),
      (_req, res) => void res.type("json").send(text),
    );
  };

export const refusalsOfWebhooks = {
  "https-required": row(
    403,
    by,
    "The webhook came over plain http, or no trusted proxy says that it came over https.",
    "Serve https; behind a proxy set `trust proxy` to its addresses and let it send X-Forwarded-Proto. On your own machine: `https: { dangerouslyAllowHttp: true }`, or play the proxy: [try it](../guide/webhooks.md#try-it-on-your-machine).",
    "Plain http:",
    answered(endpoint({ https: {} }), webhook()),
  ),
  "credentials-missing": row(
    401,
    [...by, "webhookBasicAuth"],
    "The request has no Authorization field.",
    "Configure the sender's username and password; look for a proxy that removes the field.",
    "No credentials:",
    () =>
      refusalOf("webhookBasicAuth", () =>
        verifyBasicAuth(undefined, [{ username: "service", password: "test-password" }]),
      ),
  ),
  "credentials-malformed": row(
    401,
    [...by, "webhookBasicAuth"],
    "Authorization is there twice, has another scheme or no password, or is not canonical base64 of UTF-8 without control characters.",
    "Correct the sender or the proxy.",
    "A bearer token:",
    () =>
      refusalOf("webhookBasicAuth", () =>
        verifyBasicAuth("Bearer abc", [{ username: "service", password: "test-password" }]),
      ),
  ),
  "credentials-wrong": row(
    401,
    [...by, "webhookBasicAuth"],
    "No configured credential has this username and password, or `verify` did not say `true`.",
    "Compare both sides' configuration.",
    "Another password:",
    answered(
      endpoint(),
      webhook(undefined, {
        headers: { Authorization: `Basic ${Buffer.from("service:other").toString("base64")}` },
      }),
    ),
  ),
  "credentials-unavailable": row(
    503,
    [...by, "webhookBasicAuth"],
    "The option `verify` threw, rejected, or took longer than `timeoutMs`.",
    "Repair what `verify` asks; the sender retries.",
    "A `verify` whose database is down:",
    answered(
      (app) =>
        app.post(
          "/",
          webhookBasicAuth({
            verify: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:5432")),
          }),
          (_req, res) => void res.end(),
        ),
      webhook(),
    ),
  ),
  "payload-signature-missing": row(
    401,
    [...by, "webhookHmac"],
    "`X-Payload-Signature`, or the field that the `scheme` names, is missing.",
    "Send it; look for a proxy that drops it.",
    "Without the field:",
    () => refusalOf("webhookHmac", () => verifyPayload(Buffer.from("{}"), undefined, [secret])),
  ),
  "payload-signature-malformed": row(
    401,
    [...by, "webhookHmac"],
    "The signature is not 32 bytes in base64 with padding, or, where that is allowed, 64 hex digits.",
    'Write it with `signPayload`; allow hex by `signatureEncodings: ["base64", "hex"]` in the `scheme`.',
    "Hex where base64 is due:",
    () => refusalOf("webhookHmac", () => verifyPayload(Buffer.from("{}"), "ab".repeat(32), [secret])),
  ),
  "payload-signature-wrong": row(
    401,
    [...by, "webhookHmac"],
    "The signature is not the HMAC of the body as it arrived under any of the secrets.",
    "Compare the secrets and their encoding; look for a blank or a line feed around a secret, and for a proxy that changes the body.",
    "Signed with another secret:",
    answered(
      endpoint(),
      webhook(undefined, {
        headers: { "X-Payload-Signature": signPayload(Buffer.from(envelope([event()])), "other") },
      }),
    ),
  ),
  "payload-timestamp-missing": row(
    401,
    ["webhookHmac"],
    "The scheme signs a time, and the request does not have it: its field, or its entry in the signature's field, is missing.",
    "Choose the `scheme` of this sender; look for a proxy that drops the field.",
    "Slack's scheme without X-Slack-Request-Timestamp:",
    () => withScheme("slack", { "X-Slack-Request-Timestamp": undefined }),
  ),
  "payload-timestamp-malformed": row(
    401,
    ["webhookHmac"],
    "The time is not exactly one whole number of seconds since 1970.",
    "Send seconds, not milliseconds, and once.",
    "A time in milliseconds:",
    () => withScheme("slack", { "X-Slack-Request-Timestamp": "1700000000000" }),
  ),
  "payload-timestamp-expired": row(
    401,
    ["webhookHmac"],
    "The message was signed more than `toleranceSeconds` ago: a replay, a queue, or a clock that is wrong.",
    "Set both clocks by NTP. Raise `toleranceSeconds` only for a sender that keeps the first time in its retries.",
    "Signed ten minutes ago:",
    () => withScheme("svix", {}, 600),
  ),
  "payload-timestamp-future": row(
    401,
    ["webhookHmac"],
    "The message is signed more than `toleranceSeconds` in the future: one of the clocks is wrong.",
    "Set both clocks by NTP.",
    "Signed ten minutes from now:",
    () => withScheme("svix", {}, -600),
  ),
  "payload-id-missing": row(
    401,
    ["webhookHmac"],
    "The scheme signs the message's identifier, and its field is missing.",
    "Choose the `scheme` of this sender; look for a proxy that drops the field.",
    "Svix's scheme without svix-id:",
    () => withScheme("svix", { "svix-id": undefined }),
  ),
  "payload-id-malformed": row(
    401,
    ["webhookHmac"],
    "The identifier is empty, too long, repeated, not visible ASCII, or contains the separator of the signed text.",
    "Look at what the sender sends; some frameworks join two lines of a field.",
    "An identifier with a full stop, which ends it in what is signed:",
    () => withScheme("svix", { "svix-id": "msg.1" }),
  ),
  "secrets-unavailable": row(
    503,
    [...by, "webhookHmac"],
    "The function `secrets` threw, rejected, took longer than `timeoutMs`, or returned no usable secret.",
    "Repair it; for an unknown caller return a random secret.",
    "A function that finds none:",
    answered(
      (app) => app.post("/", webhookHmac({ secrets: () => [] }), (_req, res) => void res.end()),
      webhook(),
    ),
  ),
  "payload-not-verified": row(
    500,
    ["receiveWebhook"],
    "`receiveWebhook` is on a route without `webhookHmac`: anybody could send events.",
    "Mount `webhookHmac` before it, or use `webhookEndpoint`.",
    "`receiveWebhook` alone:",
    answered((app) => app.post("/", receiveWebhook(handlerOf())), webhook()),
  ),
  "envelope-invalid": row(
    400,
    by,
    "A field of the envelope, or an `event_id`, is missing, malformed, or has invisible characters.",
    "Report it to the service, with the webhook's id.",
    "No `webhook_id`:",
    answered(endpoint(), webhook(envelope([event()], { webhook_id: undefined }))),
  ),
  "events-too-many": row(
    413,
    by,
    "The envelope has more events than `maxEvents`; none was handled.",
    "Raise `maxEvents`, up to 2,500.",
    "Two events where one is the limit:",
    answered(endpoint({ maxEvents: 1 }), webhook(envelope([event(), event({ event_id: "ev_2" })]))),
  ),
  "events-failed": row(
    503,
    by,
    "At least one event is not done: its handler threw or was too late, or the store did not answer. Done events stay done.",
    "Look at the errors that `onError` got; the retry runs only the open events.",
    "A handler that throws:",
    answered(
      endpoint({
        handler: handlerOf({}, () => {
          throw new Error("the ledger is closed");
        }),
      }),
      webhook(),
    ),
  ),
  "events-busy": row(
    503,
    by,
    "Every event that is not done is running elsewhere.",
    "None: the retry finds it done.",
    "The same webhook twice at once:",
    answered(
      endpoint({ handler: handlerOf({}, () => new Promise((resolve) => void setTimeout(resolve, 1500))) }),
      [],
      { twice: webhook() },
    ),
  ),
  "timestamp-invalid": row(
    undefined,
    ["createWebhookHandler"],
    "The time of an event is not of the form `YYYY-MM-DDThh:mm:ss.fffffffffZ`. The event fails alone; the others of its webhook are handled.",
    "Report it to the service, with the event's id.",
    "A day without a time:",
    failed({}, () => {}, event({ timestamp: "2024-01-02" })),
  ),
  "data-invalid": row(
    undefined,
    ["createWebhookHandler"],
    "The data of a known type of event lack a field, or have it in another type. The event fails alone.",
    "Report it to the service, with the event's id.",
    "A buyer's change without the buyer:",
    failed({}, () => {}, event({ data: { new_status: "ACTIVE" } })),
  ),
  "event-timed-out": row(
    undefined,
    ["createWebhookHandler"],
    "The event's handler did not end within `timeoutMs`. It goes on, and the event stays claimed until it ends.",
    "Do less in the handler, or raise `timeoutMs`.",
    "A handler of 200 milliseconds where 50 are the limit:",
    failed({ timeoutMs: 50 }, () => new Promise((resolve) => void setTimeout(resolve, 200)), event()),
  ),
  "event-id-reused": row(
    undefined,
    ["createWebhookHandler"],
    "An event has the id of one that is done and had another type. To acknowledge it would lose it. Also a notice, where only the time differs.",
    "Report it to the service. Two services on one store need two `keyPrefix`.",
    "One id, two types:",
    failed(
      {},
      () => {},
      event(),
      event({
        type: "seller.status_changed",
        data: { seller_id: "s_1", old_status: "PENDING", new_status: "ACTIVE" },
      }),
    ),
  ),
  "attempts-exhausted": row(
    undefined,
    ["createWebhookHandler"],
    "The event has failed `maxAttempts` times, and `onDeadLetter` did not keep it.",
    "Repair `onDeadLetter`; the next delivery gives it the event once more.",
    "A dead letter that fails, and one more delivery:",
    failed(
      { maxAttempts: 1, onDeadLetter: () => Promise.reject(new Error("disk full")) },
      () => {
        throw new Error("the ledger is closed");
      },
      event(),
      event(),
    ),
  ),
  "unexpected-error": row(
    500,
    ["all"],
    "An error that is not a refusal: a fault of the app, of a driver, or of this project. The app's own error handler answers.",
    "Read the error in the event or the log line.",
    "A guard of the app with a fault:",
    answered(
      (app) =>
        app.post(
          "/",
          guard("tenantGuard", () => {
            throw new TypeError("tenants is not iterable");
          }),
        ),
      post(),
    ),
  ),
};

export const notices = {
  "event-failed": notice(
    ["createWebhookHandler"],
    "An attempt at an event has failed, and there is no `onError`. The error is in the notice, or on the line.",
    "Look at the error; the next delivery tries again.",
    "A handler that throws:",
    noticed("event-failed", async () => {
      const handler = handlerOf({ onError: undefined }, () => {
        throw new Error("the ledger is closed");
      });
      await handler.handle(parseWebhookEnvelope(Buffer.from(envelope([event()]))));
    }),
  ),
  "event-type-ignored": notice(
    ["createWebhookHandler"],
    'An event has a type without a handler, under `fallback: "ignore"`. Reported once for each type.',
    "None, or a handler for the type.",
    "A type of the future:",
    noticed("event-type-ignored", async () => {
      const handler = handlerOf({ fallback: "ignore" });
      await handler.handle(
        parseWebhookEnvelope(Buffer.from(envelope([event({ type: "loan.granted", data: {} })]))),
      );
    }),
  ),
  "on-error-failed": notice(
    ["createWebhookHandler", "createTaskQueue", "createOutcomes"],
    "The hook `onError` itself threw; so did `onFailure`, `onOverdue` or `onDeadLetter` of tasks and outcomes.",
    "Repair the hook.",
    "An `onError` that throws:",
    noticed("on-error-failed", async () => {
      const handler = handlerOf(
        {
          onError: () => {
            throw new Error("no such logger");
          },
        },
        () => {
          throw new Error("the ledger is closed");
        },
      );
      await handler.handle(parseWebhookEnvelope(Buffer.from(envelope([event()]))));
    }),
  ),
  "dead-letter-failed": notice(
    ["createWebhookHandler"],
    "The hook `onDeadLetter` itself failed; the event is given to it again at the next delivery.",
    "Repair the hook.",
    "A full disk:",
    noticed("dead-letter-failed", async () => {
      const handler = handlerOf(
        { maxAttempts: 1, onDeadLetter: () => Promise.reject(new Error("disk full")) },
        () => {
          throw new Error("the ledger is closed");
        },
      );
      await handler.handle(parseWebhookEnvelope(Buffer.from(envelope([event()]))));
    }),
  ),
  "forwarded-for-ignored": notice(
    ["ipAllowlist", "payoutEndpoint"],
    "A request has X-Forwarded-For, and the app trusts no proxy, so the direct peer's address is checked. Reported once for each endpoint.",
    "Behind a proxy, set `trust proxy` to its addresses. Without a proxy, a caller tries to choose its address.",
    "The field, without `trust proxy`:",
    noticed("forwarded-for-ignored", () =>
      answered(
        (app) => app.post("/", ipAllowlist({ allow: ["192.0.2.10"] }), (_req, res) => void res.end()),
        post({ headers: { "X-Forwarded-For": "192.0.2.10" } }),
      )(),
    ),
  ),
  "proxy-in-allowlist": notice(
    ["ipAllowlist", "payoutEndpoint"],
    "A trusted proxy is itself in the list of allowed addresses. Requests in which it names no client are refused. Once for each endpoint.",
    "Take the proxy's address out of `allow`, or out of `trust proxy` when it is a client.",
    "127.0.0.1 in both:",
    noticed("proxy-in-allowlist", () =>
      answered(
        (app) =>
          app
            .set("trust proxy", "loopback")
            .post("/", ipAllowlist({ allow: ["127.0.0.1"] }), (_req, res) => void res.end()),
        post(),
      )(),
    ),
  ),
  "allowlist-changed": notice(
    ["liveAllowlist"],
    "The list of addresses has changed. The notice names what was added and removed, five at most.",
    "None, if the change was intended.",
    "A list that gains an address:",
    listed("allowlist-changed", ["192.0.2.10"], ["192.0.2.10", "198.51.100.0/28"]),
  ),
  "allowlist-empty": notice(
    ["liveAllowlist", "ipAllowlist"],
    "The source of the list returned an empty one: everybody is refused.",
    "Repair the source, unless everybody is meant to be refused.",
    "A source that finds no address:",
    listed("allowlist-empty", []),
  ),
  "allowlist-not-refreshed": notice(
    ["liveAllowlist"],
    "The list could not be read, or has an invalid entry. The last good one stays in use for `maxAgeSeconds`, if there is one. Reported once until it succeeds again.",
    "Repair the source: after that time every request is 503.",
    "A database that cannot be reached:",
    listed("allowlist-not-refreshed"),
  ),
  "trust-proxy-misread": notice(
    ["ipAllowlist", "httpsOnly"],
    "`trust proxy` is a text that Express interprets in an unexpected way: a number as a string, an octal or hexadecimal address.",
    "Write plain addresses, or a number as a number.",
    "The string `2`:",
    noticed("trust-proxy-misread", () =>
      answered(
        (app) =>
          app
            .set("trust proxy", "2")
            .post("/", ipAllowlist({ allow: ["192.0.2.10"] }), (_req, res) => void res.end()),
        post(),
      )(),
    ),
  ),
  "keys-changed": notice(
    ["jwksKeys", "directoryKeys"],
    "The new set of keys has other keyids than the one before.",
    "None during a rotation. Otherwise find out who changed it.",
    "The first set:",
    loaded("keys-changed", { keys: [jwk] }),
  ),
  "key-left-out": notice(
    ["jwksKeys", "directoryKeys"],
    "One key of a set is unusable and left out. Reported once while it stays the same.",
    "Tell the owner of the set.",
    "A set with one good and one short key:",
    loaded("key-left-out", { keys: [jwk, { ...jwk, kid: "short", x: "AAAA" }] }),
  ),
  "keys-not-refreshed": notice(
    ["jwksKeys", "directoryKeys"],
    "The keys could not be read. The last good set stays in use for `staleIfErrorSeconds`, if there is one.",
    "Repair the source: after that time every payout is 503.",
    "A server that cannot be reached:",
    loaded("keys-not-refreshed"),
  ),
  "signing-failed": notice(
    ["signResponse"],
    "An answer could not be signed, so 503 was sent: the signer threw, was late or returned no bytes, or a further component was missing.",
    "Repair the signer. The payment stands; the retry gets a signed 409.",
    "A KMS that is down:",
    noticed("signing-failed", () =>
      answered(
        signedAnswers({ alg: "ed25519", keyid, sign: () => Promise.reject(new Error("KMS is down")) }),
        () => payoutRequest(),
        { refused: false },
      )(),
    ),
  ),
  "answer-too-large": notice(
    ["signResponse"],
    "An answer exceeds `limit` and cannot be held whole for its signature, so 500 was sent.",
    "Raise `limit`, or answer with less.",
    "20 bytes where 10 are the limit:",
    noticed("answer-too-large", () =>
      answered(
        signedAnswers(createSigner(privateKey, keyid), { limit: 10 }, '{"note":"twenty by"}'),
        () => payoutRequest(),
        { refused: false },
      )(),
    ),
  ),
  "webhook-not-hidden": notice(
    ["webhookPlugin"],
    "Callers can tell a hidden webhook from an unknown route of your Fastify app: its 404 has hooks before `preHandler`, or belongs to another prefix, or `handlerTimeout` is set. The message says which. Checked once, when the app is ready.",
    "Do as the message says: [fastify](../reference/packages/fastify.md#what-shows-a-hidden-webhook).",
    "A 404 with a hook of its own:",
    noticed("webhook-not-hidden", async () => {
      const app = fastify();
      const passes = async () => {};
      app.register(
        webhookPlugin({
          url: "/hooks/3f9c2a7be1d04c55",
          basicAuth: { username: "service", password: "test-password" },
          hmac: { secret },
          handler: createWebhookHandler({
            store: memoryIdempotencyStore(),
            fallback: "ignore",
          }),
        }),
      );
      app.setNotFoundHandler({ preValidation: passes }, (_request, reply) => reply.code(404).send("nothing"));
      await app.ready();
      await app.close();
    }),
  ),
  "memory-store": notice(
    ["memoryIdempotencyStore", "memoryNonceStore"],
    "A memory store is used with `NODE_ENV=production`, as `allowInProduction` permits: a restart forgets paid keys, and no other process knows them. Reported once for each store, at its first claim.",
    "Use the stores of SQLite, PostgreSQL or Redis. If it is intended: `node --disable-warning=memory-store`.",
    "The first claim in production:",
    noticed("memory-store", () => {
      const before = process.env["NODE_ENV"];
      process.env["NODE_ENV"] = "production";
      try {
        const store = memoryNonceStore({ allowInProduction: true });
        void store.claim({ scope: "service", nonce: "1f3c", token: "attempt-1", retainMs: 1000 });
      } finally {
        process.env["NODE_ENV"] = before;
      }
    }),
  ),
  "late-statement": notice(
    ["idempotencyGuard", "payoutEndpoint", "createWebhookHandler"],
    "A handler sent a statement by its `tx` after it had settled, or after its run had been given up. The statement was rejected and not sent; its rejection ends no process. Reported once for each transaction.",
    "Await every statement before the handler returns or throws: with `Promise.all`, one that fails leaves the others running. What is to be written after the answer needs a transaction of its own.",
    "A statement that comes after its handler:",
    noticed("late-statement", async () => {
      const gate = new StatementGate("pg");
      await gate.close();
      void gate.send(() => Promise.resolve());
    }),
  ),
  "transaction-unused": notice(
    ["idempotencyGuard"],
    "`handle` ended without writing a row by `tx`, and the caller got its success: a missing `await` or `execute()` writes nothing, and what the pool or the outer client wrote committed alone, so that after a crash in between the retry writes it again. Reported once for each guard. A `pay` that does so is refused instead: `nothing-written`.",
    "Write by `tx`, and `await` it. If it writes nothing: `node --disable-warning=transaction-unused`.",
    "A `handle` that writes by something else:",
    noticed("transaction-unused", () => handledOn(() => "written elsewhere")()),
  ),
  "signature-covers-little": notice(
    ["httpSignatureVerify"],
    "The options accept a signature that leaves out method, path or body, so a proxy can change that part. Reported once for each check, at the first request other than GET, HEAD or OPTIONS.",
    "Leave `requiredComponents` and `allowUnsignedBody` at their defaults. If it is intended: `node --disable-warning=signature-covers-little`.",
    "A policy that lets the body go unsigned:",
    noticed("signature-covers-little", async () => {
      const keys = { [keyid]: publicKey };
      const check = httpSignatureVerifier({ keys, nonces: memoryNonceStore(), allowUnsignedBody: true });
      await check(signed());
    }),
  ),
  "prune-failed": notice(
    ["createSqliteStores", "createPostgresStores"],
    "Expired rows could not be removed in the background. Only space is lost, and the next run tries again.",
    "Look at the error; while it lasts, the tables grow.",
    "A table that somebody has dropped:",
    noticed("prune-failed", async () => {
      const database = new Database(":memory:");
      const stores = createSqliteStores({ database, pruneIntervalMs: 1000 });
      database.exec("DROP TABLE countersign_nonces");
      await new Promise((resolve) => void setTimeout(resolve, 2000));
      stores.close();
      database.close();
    }),
  ),
  "postgres-not-durable": notice(
    ["createPostgresStores"],
    "`fsync` or `full_page_writes` is off: after a crash of the server's machine, paid keys can be forgotten. With `NODE_ENV=production` and `fsync` off, the stores refuse to work instead.",
    "Run the server with both on.",
    undefined,
    undefined,
  ),
  "mysql-not-durable": notice(
    ["createMysqlStores"],
    "`innodb_flush_log_at_trx_commit` is not 1, or there is a binary log and `sync_binlog` is not 1: after a crash of the server's machine, paid keys can be forgotten. With `NODE_ENV=production` and the first of them, the stores refuse to work instead.",
    "Run the server with both at 1.",
    undefined,
    undefined,
  ),
  "redis-may-evict": notice(
    ["createRedisStores"],
    "`maxmemory-policy` is not `noeviction`: a server that is short of memory forgets paid keys.",
    "Set `maxmemory-policy noeviction`.",
    "`allkeys-lru`:",
    redis("redis-may-evict", withInfo("maxmemory_policy:allkeys-lru")),
  ),
  "redis-forgets-on-restart": notice(
    ["createRedisStores"],
    "Redis has no append-only file: a restart forgets paid keys and nonces.",
    "Set `appendonly yes`.",
    "`appendonly no`:",
    redis("redis-forgets-on-restart", withInfo("aof_enabled:0")),
  ),
  "redis-too-old": notice(
    ["createRedisStores"],
    "The server is older than Redis 6.2, and untested.",
    "Upgrade.",
    "Redis 5:",
    redis("redis-too-old", withInfo("redis_version:5.0.14")),
  ),
  "redis-is-replica": notice(
    ["createRedisStores"],
    "The client is connected to a replica.",
    "Connect to the primary.",
    "`role:slave`:",
    redis("redis-is-replica", withInfo("role:slave")),
  ),
  "redis-not-checked": notice(
    ["createRedisStores"],
    "INFO failed, is forbidden, or is not Redis's: the settings above are unknown.",
    "Check `maxmemory-policy` and `appendonly` by hand, or give the user the right to INFO.",
    "INFO is forbidden:",
    redis("redis-not-checked", () =>
      Promise.reject(new Error("NOPERM this user has no permissions to run the 'info' command")),
    ),
  ),
};
