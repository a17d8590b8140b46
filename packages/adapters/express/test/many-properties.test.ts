import { setFlagsFromString } from "node:v8";
import { describe, expect, test } from "@jest/globals";
import { guard } from "@countersign/express";
import { expectManyProperties } from "@countersign/express/internal";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import express4 from "express4";
import supertest from "supertest";

describe("expectManyProperties", () => {
  test("leaves the properties of an object as they were", () => {
    const subject = Object.create({ inherited: 1 }, { hidden: { value: 2, enumerable: false } });
    Object.assign(subject, { second: 2, first: 1 });
    const before = Object.getOwnPropertyDescriptors(subject);
    expectManyProperties(subject, "second");
    expect(Object.getOwnPropertyDescriptors(subject)).toEqual(before);
    expect(subject.inherited).toBe(1);
  });

  test("leaves a value alone that is no plain one", () => {
    let reads = 0;
    const getter = { get: () => (reads += 1), configurable: true };
    const constant = { value: 2, writable: false, configurable: true };
    const lasting = { value: 3, writable: true, configurable: false };
    const subject: Record<string, unknown> = Object.create({ inherited: 1 }, { getter, constant, lasting });
    const before = Object.getOwnPropertyDescriptors(subject);
    for (const name of ["getter", "constant", "lasting", "inherited", "missing"]) {
      expectManyProperties(subject, name);
    }
    expect(Object.getOwnPropertyDescriptors(subject)).toEqual(before);
    expect(reads).toBe(0);
  });

  test("lets a frozen object be", () => {
    const subject = Object.freeze({ own: 1 });
    expect(() => expectManyProperties(subject, "own")).not.toThrow();
    expect(subject).toEqual({ own: 1 });
  });
});

// V8's own word for properties in a layout that objects share.
setFlagsFromString("--allow-natives-syntax");
// oxlint-disable-next-line typescript/no-implied-eval, typescript/no-unsafe-type-assertion -- no other syntax asks V8
const sharesLayout = new Function("subject", "return %HasFastProperties(subject)") as (
  subject: object,
) => boolean;
const copiesLayouts = Number.parseInt(process.versions.v8, 10) < 13;

// An endpoint made of several checks is one guard too.
describe.each(expressVersionsWith(express4))("the first guard of a request on %s", (_version, express) => {
  test("keeps request and response out of shared layouts, where V8 would copy these for each property", async () => {
    const app = express();
    const layouts: boolean[] = [];
    const guards = ["first", "second"].map((name) =>
      guard(name, (req, res) => void layouts.push(sharesLayout(req), sharesLayout(res))),
    );
    app.get("/", ...guards, (_req, res) => void res.send("paid"));
    await supertest(app).get("/").expect(200, "paid");
    expect(layouts).toEqual(Array.from({ length: 4 }, () => !copiesLayouts));
  });
});
