import { once } from "node:events";
import {
  buildPayoutRequest,
  createPayoutInstruction,
  generateKeyPair,
  sendPayout,
} from "@countersign/sandbox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApp } from "./test-app.js";

// A test key, new for each run.
const { keyid, publicKeyPem, privateKeyPem } = generateKeyPair();
const paid = [];
let server;

beforeAll(async () => {
  server = createApp({ [keyid]: publicKeyPem }, paid).listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterAll(() => server.close());

test("a payout that comes twice is paid once", async () => {
  const url = `http://127.0.0.1:${server.address().port}/api/v1/transaction`;
  const body = createPayoutInstruction({
    idempotencyKey: "payout-1.funding-1.business-1",
  });
  // Each attempt is signed anew, with a nonce of its own.
  const send = () =>
    sendPayout(
      buildPayoutRequest({ url, body, keyid, privateKey: privateKeyPem }),
    );

  expect((await send()).status).toBe(200);
  expect((await send()).status).toBe(409);
  expect(paid).toEqual(["payout-1.funding-1.business-1"]);
});
