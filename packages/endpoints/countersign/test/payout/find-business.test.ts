import { AsyncResource } from "node:async_hooks";
import { memoryIdempotencyStore } from "@countersign/idempotency";
import type { PayoutOptions } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import type { Request } from "express";
import { payoutWith } from "./payout-body.ts";
import { platformOn, send, expressVersions } from "./platform.ts";

declare global {
  namespace Express {
    interface PayoutBusiness {
      readonly accountId: string;
    }
  }
}

type FindBusiness = NonNullable<PayoutOptions["findBusiness"]>;

const business = { accountId: "account-7" };

describe.each(expressVersions)("findBusiness on %s", (_version, framework) => {
  test.each<[string, FindBusiness]>([
    ["at once", () => business],
    ["by a promise", () => Promise.resolve(business)],
  ])("puts what it returned %s on the payout", async (_name, findBusiness) => {
    const { app, paid } = platformOn(framework, { findBusiness });
    await send(app).expect(200);
    expect(paid[0]?.business?.accountId).toBe("account-7");
  });

  test("asks with the IBAN in electronic format, the business_id and the request", async () => {
    const questions: unknown[] = [];
    const { app, paid } = platformOn(framework, {
      findBusiness: (query, req) => {
        questions.push([query, req.method]);
        return true;
      },
    });
    await send(app, payoutWith("/beneficiary/iban", "DE89 3704 0044 0532 0130 00")).expect(200);
    expect(questions).toEqual([[{ iban: "DE89370400440532013000", businessId: "biz_1" }, "POST"]]);
    expect(paid[0]?.business).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ["false", false],
    ["undefined", undefined],
    ["null", null],
    ["an empty string", ""],
    ["zero", 0],
    ["a promise of false", Promise.resolve(false)],
    ["a promise of undefined", Promise.resolve()],
    ["a promise of null", Promise.resolve(null)],
  ])("takes %s for an unknown business", async (_name, answer) => {
    const { app, paid } = platformOn(framework, { findBusiness: (() => answer) as FindBusiness });
    const { body } = await send(app).expect(400);
    expect(body).toMatchObject({
      code: "business-unknown",
      errors: [{ pointer: "/beneficiary/iban", code: "business-unknown" }],
    });
    expect(paid).toEqual([]);
  });

  test.each<[string, FindBusiness]>([
    [
      "throws",
      () => {
        throw new Error("database is down");
      },
    ],
    ["rejects", () => Promise.reject(new Error("database is down"))],
    ["returns an Error", () => new Error("database is down") as never],
    ["resolves to one", () => Promise.resolve(new Error("database is down") as never)],
    ["never answers", () => new Promise(() => {})],
  ])("is in doubt when the lookup %s", async (_name, findBusiness) => {
    const { app, paid, codes } = platformOn(framework, { findBusiness, lookupTimeoutMs: 20 });
    const answer = await send(app).expect(503).expect("Retry-After", /^\d+$/);
    expect(answer.text).not.toContain("database");
    expect(codes).toEqual(["business-lookup-unavailable"]);
    expect(paid).toEqual([]);
  });

  test.each<[string, unknown, string]>([
    ["no rows", [], "an array"],
    ["a promise of rows", Promise.resolve([business]), "an array"],
    ["a result of pg without rows", { command: "SELECT", rowCount: 0, rows: [] }, "the result of a query"],
    ["a query of Kysely", { execute: () => Promise.resolve([]) }, "a query that nobody has executed"],
    ["a Response", new Response(null, { status: 404 }), "a Response"],
  ])("refuses to take %s for a business", async (_name, answer, what) => {
    const { app, paid, appErrors } = platformOn(framework, { findBusiness: (() => answer) as FindBusiness });
    await send(app).expect(500, { app: true });
    expect(String(appErrors)).toContain(`findBusiness returned ${what}`);
    expect(paid).toEqual([]);
  });

  test.each<[string, FindBusiness, number]>([
    ["an unknown business", () => false, 400],
    ["a failed lookup", () => Promise.reject(new Error("database is down")), 503],
  ])("releases the key after %s, so that a retry pays", async (_name, failing, status) => {
    let find = failing;
    const { app, paid } = platformOn(framework, { findBusiness: (query, req) => find(query, req) });
    await send(app).expect(status);
    find = () => true;
    await send(app).expect(200);
    expect(paid).toHaveLength(1);
  });

  test("counts only after the key: what was paid stays 409, whatever it finds since", async () => {
    let known = true;
    let questions = 0;
    const findBusiness: FindBusiness = () => {
      questions += 1;
      return known;
    };
    const { app } = platformOn(framework, { findBusiness });
    await send(app).expect(200);
    known = false;
    await send(app).expect(409);
    expect(questions).toBe(2);
  });

  // A time-out in front of the endpoint gives the key back: a payment after it would be nobody's, and the retry's the second.
  test.each(["hold", "rerun"] as const)(
    "pays nothing once the app has answered, under %s",
    async (recovery) => {
      let found = (): void => {};
      let isSlow = true;
      // In the context of who set the time-out.
      const timeOut = AsyncResource.bind((req: object) => void (req as Request).res?.status(503).json({}));
      const platform = platformOn(framework, {
        idempotency: { recovery },
        findBusiness: (_query, req) => {
          if (!isSlow) return true;
          isSlow = false;
          setImmediate(timeOut, req);
          return new Promise<true>((resolve) => (found = () => resolve(true)));
        },
      });
      await send(platform.app).expect(503);
      found();
      expect(platform.paid).toEqual([]);
      // Nothing has begun, so nothing is in doubt.
      await send(platform.app).expect(200);
      expect(platform.paid).toHaveLength(1);
    },
  );

  test("is asked before the key is claimed: a slow answer keeps no lease", async () => {
    const store = memoryIdempotencyStore();
    const running: number[] = [];
    const platform = platformOn(framework, {
      idempotency: { store },
      findBusiness: () => {
        running.push(store.list({ state: "running", limit: 1 }).entries.length);
        return true;
      },
    });
    await send(platform.app).expect(200);
    expect(running).toEqual([0]);
    expect(platform.paid).toHaveLength(1);
  });

  test("is not asked for a request that is unsigned or breaks the schema", async () => {
    let questions = 0;
    const findBusiness: FindBusiness = () => {
      questions += 1;
      return true;
    };
    const { app } = platformOn(framework, { findBusiness });
    await send(app, undefined, {}).expect(401);
    await send(app, payoutWith("/amount", null)).expect(400);
    expect(questions).toBe(0);
  });
});
