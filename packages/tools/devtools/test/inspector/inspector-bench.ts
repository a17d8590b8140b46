import { createHmac } from "node:crypto";
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { inspector, type Inspector, type InspectorOptions } from "@countersign/devtools/inspector";
import { payoutEndpoint } from "countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express, { type Express } from "express";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { served } from "@countersign/test-support/servers/served.ts";
import {
  asPage,
  send,
  streamOf,
  type Answer,
  type Sending,
} from "@countersign/test-support/servers/page-client.ts";
import { payoutBody } from "../../../../endpoints/countersign/test/payout/payout-body.ts";
import {
  createHandSigner,
  signByHand,
  type HandSigner,
} from "../../../../endpoints/countersign/test/payout/sign-by-hand.ts";

/** TEST CREDENTIALS, which nothing else in an answer looks like. */
export const seeded = {
  username: "seeded-user",
  password: 'seeded "pass+word" 92bc',
  secret: "seeded-secret/5d08",
  other: "seeded-other?41aa",
};

/** Of the only caller that may pay out, behind a proxy on this machine. */
export const clientAddress = "192.0.2.10";
export const payoutPath = "/api/v1/transaction";
export const hookPath = "/hooks/inspected";
export const signer: HandSigner = createHandSigner("lender-1");

/** The body of a payout under this key, which the store keeps as `payout:<key>.a.b`. */
export function payoutText(key: string): string {
  return JSON.stringify({ ...payoutBody, idempotency_key: `${key}.a.b` });
}

const retentionMs = 72 * 3_600_000;
const newStore = () => memoryIdempotencyStore({ max: 100_000, retentionMs });

/** A platform on Express that receives payouts and webhooks, and the inspector beside it. */
export class InspectorBench {
  store = newStore();
  hold: Promise<void> | undefined;
  origin = "";
  #inspector: Inspector | undefined;

  get inspector(): Inspector {
    if (this.#inspector === undefined) throw new Error("the inspector was not started");
    return this.#inspector;
  }

  get token(): string {
    return /#token=(.+)$/.exec(this.inspector.pageUrl)?.[1] ?? "";
  }

  /** Until the test has ended, or others are opened in their place. */
  async open(options: InspectorOptions = {}): Promise<void> {
    await this.close();
    this.hold = undefined;
    this.store = newStore();
    this.origin = await served(this.#platform());
    this.#inspector = await inspector(this.optionsWith(options));
    afterTest(() => this.close());
  }

  optionsWith(options: InspectorOptions): InspectorOptions {
    const { username, password, secret, other } = seeded;
    return {
      signature: { keys: { [signer.keyid]: signer.publicKeyPem } },
      hmac: { secret },
      basicAuth: { username, password },
      addresses: { allow: [clientAddress], trustProxy: ["127.0.0.1"] },
      stores: { payouts: this.store },
      secrets: [other],
      ...options,
    };
  }

  #platform(): Express {
    const { username, password, secret } = seeded;
    const app = express().set("trust proxy", "loopback");
    const { store } = this;
    app.post(
      payoutPath,
      payoutEndpoint({
        addresses: { allow: [clientAddress] },
        signature: {
          keys: { [signer.keyid]: signer.publicKeyPem },
          nonces: memoryNonceStore({ max: 100_000 }),
        },
        idempotency: { store },
        referenceField: "reference",
      }),
      async (_req, res) => {
        await this.hold;
        res.json({ acknowledged: true });
      },
    );
    const handler = createWebhookHandler({ store, fallback: "ignore" });
    app.use(hookPath, webhookEndpoint({ basicAuth: { username, password }, hmac: { secret }, handler }));
    return app;
  }

  async close(): Promise<void> {
    await this.#inspector?.close();
  }

  /** Sends a payout, signed unless `headers` say otherwise. */
  pay(key: string, { headers, body }: Sending = {}): Promise<Answer> {
    const bytes = body ?? payoutText(key);
    const signed = {
      "X-Forwarded-For": clientAddress,
      ...signByHand(signer, { path: payoutPath, body: bytes }),
    };
    return send(this.origin + payoutPath, {
      method: "POST",
      headers: { ...signed, ...headers },
      body: bytes,
    });
  }

  /** Sends a webhook with everything right unless `headers` say otherwise. */
  notify(body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const { username, password, secret } = seeded;
    return send(this.origin + hookPath, {
      method: "POST",
      body,
      headers: {
        "Content-Type": "application/json",
        "X-Forwarded-Proto": "https",
        Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`,
        "X-Payload-Signature": createHmac("sha256", secret).update(body).digest("base64"),
        ...headers,
      },
    });
  }

  /** As the page asks, see {@link asPage}. */
  ask(path: string, headers: Readonly<Record<string, string>> = {}, method = "GET"): Promise<Answer> {
    return asPage({ url: this.inspector.url, token: this.token }, path, { method, headers });
  }

  async newest(): Promise<Record<string, unknown>> {
    const { body } = await this.ask("/inspector/requests?limit=1");
    const [summary] = body["requests"] as { id: number }[];
    return (await this.ask(`/inspector/requests/${summary?.id}`)).body;
  }

  /** The first events of the stream until `isLast` holds. */
  stream(isLast: (text: string) => boolean): Promise<string> {
    return streamOf({ url: this.inspector.url, token: this.token }, "/inspector/stream", isLast);
  }
}
