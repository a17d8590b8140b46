const express = require("express");
const { memoryNonceStore } = require("@countersign/http-signature-verify");
const { memoryIdempotencyStore } = require("@countersign/idempotency-guard");
const { payoutEndpoint } = require("@countersign/payout");
const { createWebhookHandler, webhookEndpoint } = require("@countersign/webhooks");

void import("./send.mjs").then(async ({ handleOnce, payOnce }) => {
  await payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint });
  await handleOnce({ express, memoryIdempotencyStore, createWebhookHandler, webhookEndpoint });
});
