import { handledOn } from "./transactions.mjs";
import { guard } from "@countersign/express";
import { webhookPlugin } from "@countersign/fastify";
import { createStores } from "@countersign/store-sql";
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
import { answered, keyid, noticed, post, privateKey, publicKey, refusalOf, signed } from "./provoke.mjs";
import { payoutRequest, payouts } from "./bodies.mjs";

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
  "https-required": answered(endpoint({ https: {} }), webhook()),
  "credentials-missing": () =>
    refusalOf("webhookBasicAuth", () =>
      verifyBasicAuth(undefined, [{ username: "service", password: "test-password" }]),
    ),
  "credentials-malformed": () =>
    refusalOf("webhookBasicAuth", () =>
      verifyBasicAuth("Bearer abc", [{ username: "service", password: "test-password" }]),
    ),
  "credentials-wrong": answered(
    endpoint(),
    webhook(undefined, {
      headers: { Authorization: `Basic ${Buffer.from("service:other").toString("base64")}` },
    }),
  ),
  "credentials-unavailable": answered(
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
  "payload-signature-missing": () =>
    refusalOf("webhookHmac", () => verifyPayload(Buffer.from("{}"), undefined, [secret])),
  "payload-signature-malformed": () =>
    refusalOf("webhookHmac", () => verifyPayload(Buffer.from("{}"), "ab".repeat(32), [secret])),
  "payload-signature-wrong": answered(
    endpoint(),
    webhook(undefined, {
      headers: { "X-Payload-Signature": signPayload(Buffer.from(envelope([event()])), "other") },
    }),
  ),
  "payload-timestamp-missing": () => withScheme("slack", { "X-Slack-Request-Timestamp": undefined }),
  "payload-timestamp-malformed": () => withScheme("slack", { "X-Slack-Request-Timestamp": "1700000000000" }),
  "payload-timestamp-expired": () => withScheme("svix", {}, 600),
  "payload-timestamp-future": () => withScheme("svix", {}, -600),
  "payload-id-missing": () => withScheme("svix", { "svix-id": undefined }),
  "payload-id-malformed": () => withScheme("svix", { "svix-id": "msg.1" }),
  "secrets-unavailable": answered(
    (app) => app.post("/", webhookHmac({ secrets: () => [] }), (_req, res) => void res.end()),
    webhook(),
  ),
  "payload-not-verified": answered((app) => app.post("/", receiveWebhook(handlerOf())), webhook()),
  "envelope-invalid": answered(endpoint(), webhook(envelope([event()], { webhook_id: undefined }))),
  "events-too-many": answered(
    endpoint({ maxEvents: 1 }),
    webhook(envelope([event(), event({ event_id: "ev_2" })])),
  ),
  "events-failed": answered(
    endpoint({
      handler: handlerOf({}, () => {
        throw new Error("the ledger is closed");
      }),
    }),
    webhook(),
  ),
  "events-busy": answered(
    endpoint({ handler: handlerOf({}, () => new Promise((resolve) => void setTimeout(resolve, 1500))) }),
    [],
    { twice: webhook() },
  ),
  "timestamp-invalid": failed({}, () => {}, event({ timestamp: "2024-01-02" })),
  "data-invalid": failed({}, () => {}, event({ data: { new_status: "ACTIVE" } })),
  "event-timed-out": failed(
    { timeoutMs: 50 },
    () => new Promise((resolve) => void setTimeout(resolve, 200)),
    event(),
  ),
  "event-id-reused": failed(
    {},
    () => {},
    event(),
    event({
      type: "seller.status_changed",
      data: { seller_id: "s_1", old_status: "PENDING", new_status: "ACTIVE" },
    }),
  ),
  "attempts-exhausted": failed(
    { maxAttempts: 1, onDeadLetter: () => Promise.reject(new Error("disk full")) },
    () => {
      throw new Error("the ledger is closed");
    },
    event(),
    event(),
  ),
  "unexpected-error": answered(
    (app) =>
      app.post(
        "/",
        guard("tenantGuard", () => {
          throw new TypeError("tenants is not iterable");
        }),
      ),
    post(),
  ),
};

export const notices = {
  "event-failed": noticed("event-failed", async () => {
    const handler = handlerOf({ onError: undefined }, () => {
      throw new Error("the ledger is closed");
    });
    await handler.handle(parseWebhookEnvelope(Buffer.from(envelope([event()]))));
  }),
  "event-malformed": noticed("event-malformed", async () => {
    const malformed = envelope([event({ data: { new_status: "ACTIVE" } })]);
    await handlerOf().handle(parseWebhookEnvelope(Buffer.from(malformed)));
  }),
  "event-type-ignored": noticed("event-type-ignored", async () => {
    const handler = handlerOf({ fallback: "ignore" });
    await handler.handle(
      parseWebhookEnvelope(Buffer.from(envelope([event({ type: "loan.granted", data: {} })]))),
    );
  }),
  "on-error-failed": noticed("on-error-failed", async () => {
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
  "dead-letter-failed": noticed("dead-letter-failed", async () => {
    const handler = handlerOf(
      { maxAttempts: 1, onDeadLetter: () => Promise.reject(new Error("disk full")) },
      () => {
        throw new Error("the ledger is closed");
      },
    );
    await handler.handle(parseWebhookEnvelope(Buffer.from(envelope([event()]))));
  }),
  "forwarded-for-ignored": noticed("forwarded-for-ignored", () =>
    answered(
      (app) => app.post("/", ipAllowlist({ allow: ["192.0.2.10"] }), (_req, res) => void res.end()),
      post({ headers: { "X-Forwarded-For": "192.0.2.10" } }),
    )(),
  ),
  "proxy-in-allowlist": noticed("proxy-in-allowlist", () =>
    answered(
      (app) =>
        app
          .set("trust proxy", "loopback")
          .post("/", ipAllowlist({ allow: ["127.0.0.1"] }), (_req, res) => void res.end()),
      post(),
    )(),
  ),
  "allowlist-changed": listed("allowlist-changed", ["192.0.2.10"], ["192.0.2.10", "198.51.100.0/28"]),
  "allowlist-empty": listed("allowlist-empty", []),
  "allowlist-not-refreshed": listed("allowlist-not-refreshed"),
  "trust-proxy-misread": noticed("trust-proxy-misread", () =>
    answered(
      (app) =>
        app
          .set("trust proxy", "2")
          .post("/", ipAllowlist({ allow: ["192.0.2.10"] }), (_req, res) => void res.end()),
      post(),
    )(),
  ),
  "keys-changed": loaded("keys-changed", { keys: [jwk] }),
  "key-left-out": loaded("key-left-out", { keys: [jwk, { ...jwk, kid: "short", x: "AAAA" }] }),
  "keys-not-refreshed": loaded("keys-not-refreshed"),
  "signing-failed": noticed("signing-failed", () =>
    answered(
      signedAnswers({ alg: "ed25519", keyid, sign: () => Promise.reject(new Error("KMS is down")) }),
      () => payoutRequest(),
      { refused: false },
    )(),
  ),
  "answer-too-large": noticed("answer-too-large", () =>
    answered(
      signedAnswers(createSigner(privateKey, keyid), { limit: 10 }, '{"note":"twenty by"}'),
      () => payoutRequest(),
      { refused: false },
    )(),
  ),
  "webhook-not-hidden": noticed("webhook-not-hidden", async () => {
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
  "memory-store": noticed("memory-store", () => {
    const before = process.env["NODE_ENV"];
    process.env["NODE_ENV"] = "production";
    try {
      const store = memoryNonceStore({ allowInProduction: true });
      void store.claim({ scope: "service", nonce: "1f3c", token: "attempt-1", retainMs: 1000 });
    } finally {
      process.env["NODE_ENV"] = before;
    }
  }),
  "late-statement": noticed("late-statement", async () => {
    const gate = new StatementGate("pg");
    await gate.close();
    void gate.send(() => Promise.resolve());
  }),
  "transaction-unused": noticed("transaction-unused", () => handledOn(() => "written elsewhere")()),
  "signature-covers-little": noticed("signature-covers-little", async () => {
    const keys = { [keyid]: publicKey };
    const check = httpSignatureVerifier({ keys, nonces: memoryNonceStore(), allowUnsignedBody: true });
    await check(signed());
  }),
  "prune-failed": noticed("prune-failed", async () => {
    const database = new Database(":memory:");
    const stores = createStores({ database, pruneIntervalMs: 1000 });
    database.exec("DROP TABLE countersign_nonces");
    await new Promise((resolve) => void setTimeout(resolve, 2000));
    stores.close();
    database.close();
  }),
  "redis-may-evict": redis("redis-may-evict", withInfo("maxmemory_policy:allkeys-lru")),
  "redis-forgets-on-restart": redis("redis-forgets-on-restart", withInfo("aof_enabled:0")),
  "redis-too-old": redis("redis-too-old", withInfo("redis_version:5.0.14")),
  "redis-is-replica": redis("redis-is-replica", withInfo("role:slave")),
  "redis-not-checked": redis("redis-not-checked", () =>
    Promise.reject(new Error("NOPERM this user has no permissions to run the 'info' command")),
  ),
};
