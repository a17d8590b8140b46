import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency-guard";
import { payoutEndpoint } from "@countersign/payout";
import express from "express";
import { payOnce } from "./send.mjs";

await payOnce({ express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint });
