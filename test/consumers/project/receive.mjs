import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import { createWebhookHandler, webhookEndpoint } from "countersign/webhooks";
import express from "express";
import { handleOnce, payOnce } from "./send.mjs";

await payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint });
await handleOnce({ express, memoryIdempotencyStore, createWebhookHandler, webhookEndpoint });
