import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { createPayoutParser } from "../src/schema.ts";
import { payoutBody, payoutWith } from "./payout-body.ts";
import { path, platformOn, send, signer } from "./platform.ts";
import { signByHand, type HandSigned } from "./sign-by-hand.ts";
import { fuzzRuns } from "@countersign/test-support/runs/fuzz-runs.ts";

const maxLengths = { idempotencyKey: 256, businessId: 256, beneficiaryName: 256, reference: 1024 };
const parse = createPayoutParser({ referenceField: "reference", maxLengths });
const pointers = [
  "/idempotency_key",
  "/business_id",
  "/beneficiary",
  "/beneficiary/iban",
  "/beneficiary/bic",
  "/beneficiary/name",
  "/amount",
  "/reference",
];

describe("the payout schema", () => {
  test("gives a payout or the faults of known fields for any JSON", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        const { payout, faults = [] } = parse(body);
        expect(payout === undefined).toBe(faults.length > 0);
        for (const { pointer } of faults) expect(["", ...pointers]).toContain(pointer);
      }),
    );
  });

  test("finds at most the fault of the one field that was changed, and never throws", () => {
    fc.assert(
      fc.property(fc.constantFrom(...pointers), fc.jsonValue(), (pointer, value) => {
        const { faults = [] } = parse(payoutWith(pointer, value));
        for (const fault of faults) expect(fault.pointer.startsWith(pointer)).toBe(true);
        expect(new Set(faults.map((fault) => fault.pointer)).size).toBe(faults.length);
      }),
      fuzzRuns(500),
    );
  });

  test("accepts no IBAN of which one digit was changed", () => {
    const iban = "DE89370400440532013000";
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 21 }), fc.integer({ min: 1, max: 9 }), (index, step) => {
        const digit = (Number(iban[index]) + step) % 10;
        const changed = iban.slice(0, index) + digit + iban.slice(index + 1);
        const { faults = [] } = parse(payoutWith("/beneficiary/iban", changed));
        expect(faults.map(({ code }) => code)).toEqual(["invalid-iban"]);
      }),
    );
  });
});

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
