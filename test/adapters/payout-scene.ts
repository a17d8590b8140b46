import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore, type IdempotencyStore } from "@countersign/idempotency";
import { payoutStoreKey, type PayoutOptions } from "countersign/payout";
import { createHash } from "node:crypto";
import { samplePath, signRequest, type SigningPlan } from "../support/signers/independent-signer.ts";
import type { WireRequest } from "../support/servers/http-client.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";
import { payoutBody } from "../../packages/endpoints/countersign/test/payout/payout-body.ts";
import { handlerType, type Handler, type PayoutScene } from "./scene.ts";
import type { ExactAnswer } from "./answers.ts";
import { withOverrides, type Overrides } from "../support/runs/sections.ts";

export const payoutText: string = JSON.stringify(payoutBody);
export const idempotencyKey = String(payoutBody["idempotency_key"]);
export const acknowledged: ExactAnswer = {
  status: 200,
  headers: { "content-type": handlerType },
  body: "acknowledged",
};

/** A genuine payout, or one that differs from it by what the plan says. */
export function signPayout(plan: SigningPlan = {}): WireRequest {
  const { method, path, headers, body } = signRequest({ path: samplePath, body: payoutText, ...plan });
  return { method, path, headers, body };
}

/** A payout of these bytes, signed as the service would. */
export function signBody(body: string | Buffer, contentType?: string): WireRequest {
  return signPayout({ body, contentType });
}

/** What may differ from a platform with new stores whose handler acknowledges. */
export interface PayoutState {
  readonly options?: Overrides<PayoutOptions<object>>;
  readonly handler?: Handler;
  /** Brings the key into a state. `fingerprint` is that of {@link payoutText}. */
  readonly before?: (store: IdempotencyStore, key: string, fingerprint: string) => unknown;
  /** Stands before the store with the record, and does as it likes. */
  readonly storeOf?: (inner: IdempotencyStore) => IdempotencyStore;
  readonly appStatus?: number;
}

export function payoutScene({
  options,
  handler,
  before,
  storeOf,
  appStatus,
}: PayoutState = {}): () => PayoutScene {
  return () => {
    const inner = memoryIdempotencyStore({ max: 100 });
    const key = payoutStoreKey(idempotencyKey, options?.idempotency?.scope);
    before?.(inner, key, createHash("sha256").update(payoutText).digest("base64url"));
    return {
      kind: "payout",
      path: samplePath,
      options: withOverrides<PayoutOptions<object>>(
        {
          addresses: { allow: ["127.0.0.1"] },
          signature: {
            keys: { "test-key": servicePublicPem },
            nonces: memoryNonceStore({ max: 100 }),
            limit: "4kb",
          },
          idempotency: { store: storeOf?.(inner) ?? inner, waitMs: 0 },
          referenceField: "reference",
        },
        options ?? {},
      ),
      handler: handler ?? (() => ({ status: 200, body: "acknowledged" })),
      appStatus,
      trace: { codes: [], ran: 0, recorded: () => inner.read(key)?.state ?? "free" },
    };
  };
}
