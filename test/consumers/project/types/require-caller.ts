// In CommonJS these imports are compiled to require().
import { memoryNonceStore } from "@countersign/http-signature-verify";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import { payoutEndpoint } from "countersign/payout";
import express from "express";

export async function load() {
  return { express, memoryNonceStore, memoryIdempotencyStore, payoutEndpoint };
}
