const express = require("express");
const { memoryNonceStore } = require("@countersign/http-signature-verify");
const { memoryIdempotencyStore } = require("@countersign/idempotency");
const { payoutEndpoint } = require("countersign/payout");
const { createWebhookHandler, webhookEndpoint } = require("countersign/webhooks");
const countersign = require("countersign");
const { handleOnce, payOnce } = require("./send.js");

test("receives a payout", () =>
  payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint }));

test("receives a webhook", () =>
  handleOnce({ express, memoryIdempotencyStore, createWebhookHandler, webhookEndpoint }));

test("receives both by one package", async () => {
  await payOnce({ express, ...countersign });
  await handleOnce({ express, ...countersign });
});
