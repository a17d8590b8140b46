import { describe, expect, test } from "@jest/globals";
import { expectManyProperties } from "@countersign/express/door";

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
