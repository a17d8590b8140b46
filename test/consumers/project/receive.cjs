const express = require("express");
const { memoryNonceStore } = require("@countersign/http-signature-verify");
const { memoryIdempotencyStore } = require("@countersign/idempotency-guard");
const { payoutEndpoint } = require("@countersign/payout");

void import("./send.mjs").then(({ payOnce }) =>
  payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint }),
);
