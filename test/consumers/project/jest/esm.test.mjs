import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express from "express";
import { handleOnce, payOnce } from "./send.mjs";

test("receives a payout", () =>
  payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint }));

test("receives a webhook", () =>
  handleOnce({ express, memoryIdempotencyStore, createWebhookHandler, webhookEndpoint }));
