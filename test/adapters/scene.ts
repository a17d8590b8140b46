import { isGuardError } from "@countersign/core";
import type { TransactionMode } from "@countersign/idempotency";
import type { Payout, PayoutOptions, PayoutTransactionOptions } from "countersign/payout";
import type {
  DrainableMiddleware,
  IdempotencyGuardOptions,
  RequestIdempotency,
} from "@countersign/idempotency-guard";
import type { HttpSignatureVerifyOptions } from "@countersign/http-signature-verify";
import type { WebhookOptions } from "countersign/webhooks";
import type { WireAnswer, WireRequest } from "../support/servers/http-client.ts";
import type { ExactAnswer } from "./answers.ts";

/** What a handler answers, in no framework's words. */
export interface PlainAnswer {
  readonly status: number;
  readonly body?: string;
}

/** The handler of a row: answers, throws, or takes its time. */
export type Handler = (context: {
  readonly idempotency: RequestIdempotency;
  readonly payout?: Payout;
}) => PlainAnswer | Promise<PlainAnswer>;

/** What a row observes beside the answer. */
export interface Trace {
  /** The codes of what was refused, as `onReject` heard them. */
  readonly codes: string[];
  ran: number;
  /** What the store knows of the row's key now. */
  recorded?: () => "free" | "running" | "done" | "held";
}

/** The app of a row before its request, for any adapter. Made anew for each one. */
export type Scene = PayoutScene | PaymentScene | WebhookScene | IdempotencyScene | PolicyScene;

export interface PayoutScene {
  readonly kind: "payout";
  readonly path: string;
  readonly options: PayoutOptions<object>;
  readonly handler: Handler;
  readonly trace: Trace;
  /** What the app answers to an error that is no refusal. Default 500. */
  readonly appStatus?: number | undefined;
}

/** A payout that is paid in one transaction with its key and its nonce. */
export interface PaymentScene {
  readonly kind: "payment";
  readonly path: string;
  readonly options: PayoutTransactionOptions<never, TransactionMode, object>;
  readonly trace: Trace;
  /** What the app answers to an error that is no refusal. Default 500. */
  readonly appStatus?: number | undefined;
  /** Hears of the endpoint once it is mounted. */
  readonly mounted?: ((endpoint: Pick<DrainableMiddleware, "drain">) => void) | undefined;
}

export interface WebhookScene {
  readonly kind: "webhook";
  readonly path: string;
  readonly options: WebhookOptions<object>;
  readonly hide: boolean;
  readonly trace: Trace;
}

/** The key is the member `key` of a JSON body. */
export interface IdempotencyScene {
  readonly kind: "idempotency";
  readonly path: string;
  readonly options: Omit<IdempotencyGuardOptions<object>, "key">;
  readonly handler: Handler;
  readonly trace: Trace;
}

/** `httpSignatureVerify`, once for each policy, before a handler that answers {@link letIn} to every path: no router refuses any. */
export interface PolicyScene {
  readonly kind: "policy";
  readonly path: string;
  readonly policies: readonly HttpSignatureVerifyOptions[];
  readonly trace: Trace;
}

/** A framework with its adapter. Errors that are no refusal reach the app, which answers {@link appError}; at fetch the route answers them. */
export interface Adapter {
  readonly name: AdapterName;
  open(scene: Scene): Promise<OpenAdapter>;
}

export interface OpenAdapter {
  /** Rejects with {@link Unsendable} what this adapter has no way to be sent. */
  send(wire: WireRequest): Promise<WireAnswer>;
  close(): Promise<void>;
  readonly port?: number;
}

export type AdapterName =
  | "express 5"
  | "express 4"
  | "node:http"
  | "fastify"
  | "fetch"
  | "fetch behind node"
  | "hono";

export class Unsendable extends Error {}

/** The app's own answer to an error that is no refusal. */
export const appError = { status: 500, type: "application/x-app", body: "the app failed" } as const;

/** As {@link appError}, with the status that the scene's app has. */
export function appErrorOf(
  scene: Scene,
): typeof appError | (Omit<typeof appError, "status"> & { status: number }) {
  const status = "appStatus" in scene ? scene.appStatus : undefined;
  return status === undefined ? appError : { ...appError, status };
}

/** The answer of the handler of a {@link PolicyScene}. */
export const letIn = "let in";

/** The media type of a handler's answer: no framework adds a charset to it. */
export const handlerType = "application/x-handler";

/** Answers with the key that the caller sent, and with the store's. */
export const showKeys: Handler = ({ idempotency: { key, storeKey } }) => ({
  status: 200,
  body: JSON.stringify({ key, storeKey }),
});

/** What {@link showKeys} answers. */
export function bothKeys(key: string, storeKey: string): ExactAnswer {
  return { status: 200, headers: { "content-type": handlerType }, body: JSON.stringify({ key, storeKey }) };
}

export function noteCode({ codes }: Trace): (error: unknown) => void {
  return (error) => void codes.push(isGuardError(error) ? error.code : "no-code");
}
