const express = require("express");
const { memoryNonceStore } = require("@countersign/http-signature-verify");
const { memoryIdempotencyStore } = require("@countersign/idempotency");
const { payoutEndpoint } = require("countersign/payout");
const { createWebhookHandler, webhookEndpoint } = require("countersign/webhooks");

async function receive() {
  const { handleOnce, payOnce } = await import("./send.mjs");
  await payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint });
  await handleOnce({ express, memoryIdempotencyStore, createWebhookHandler, webhookEndpoint });
}

void receive();
