import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { payoutBody } from "./payout-body.ts";
import { path, platformOn, send, signer } from "./platform.ts";
import { signByHand, type HandSigned } from "./sign-by-hand.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

describe("a signed payout with one changed character", () => {
  const { app, paid } = platformOn(express);
  const bodyText = JSON.stringify(payoutBody);
  let server: Server;
  let origin: string;

  beforeAll(async () => {
    server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test.each<[keyof HandSigned | "body"]>([
    ["body"],
    ["Content-Digest"],
    ["Signature-Input"],
    ["Signature"],
    ["Content-Type"],
  ])("is 401 when it is in the %s", async (part) => {
    const change = fc.record({ at: fc.nat(), character: fc.integer({ min: 0x21, max: 0x7e }) });
    await fc.assert(
      fc.asyncProperty(change, async ({ at, character }) => {
        const signed = { ...signByHand(signer, { path, body: bodyText }) };
        const original = part === "body" ? bodyText : signed[part];
        const index = at % original.length;
        const changed = original.slice(0, index) + String.fromCharCode(character) + original.slice(index + 1);
        fc.pre(changed !== original);
        const headers = part === "body" ? signed : { ...signed, [part]: changed };
        const { status } = await send(origin, part === "body" ? changed : bodyText, headers);
        expect(status).toBe(401);
      }),
      fuzzRuns(60),
    );
    expect(paid).toEqual([]);
  });
});
