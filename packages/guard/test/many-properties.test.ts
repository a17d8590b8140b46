import { describe, expect, test } from "@jest/globals";
import { expectManyProperties } from "@countersign/guard";

describe("expectManyProperties", () => {
  test("leaves the properties of an object and their order as they were", () => {
    const subject = Object.create({ inherited: 1 }, { hidden: { value: 2, enumerable: false } });
    Object.assign(subject, { second: 2, first: 1 });
    const before = Object.getOwnPropertyDescriptors(subject);
    expectManyProperties(subject);
    expect(Reflect.ownKeys(subject)).toEqual(["hidden", "second", "first"]);
    expect(Object.getOwnPropertyDescriptors(subject)).toEqual(before);
    expect(subject.inherited).toBe(1);
  });

  test("lets an object that takes no property be", () => {
    const subject = Object.freeze({ own: 1 });
    expect(() => expectManyProperties(subject)).not.toThrow();
    expect(Reflect.ownKeys(subject)).toEqual(["own"]);
  });
});
