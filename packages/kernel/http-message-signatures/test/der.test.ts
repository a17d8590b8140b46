import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { rsaNumbers, rsaPublicKey } from "../src/der.ts";
import { fuzzRuns } from "../../../../test/support/fuzz-runs.ts";

const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
const der = publicKey.export({ format: "der", type: "pkcs1" });

test("rsaNumbers and rsaPublicKey agree with node:crypto", () => {
  const numbers = rsaNumbers(der);
  const { n, e } = publicKey.export({ format: "jwk" });
  expect(numbers?.n.toString("base64url")).toBe(n);
  expect(numbers?.e.toString("base64url")).toBe(e);
  expect(rsaPublicKey(Buffer.from(n ?? "", "base64url"), Buffer.from(e ?? "", "base64url"))).toEqual(der);
});

test("rsaNumbers reads what rsaPublicKey writes, whatever the lengths", () => {
  const number = fc
    .uint8Array({ minLength: 1, maxLength: 1200 })
    .filter(([first]) => first !== 0)
    .map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(number, number, (n, e) => {
      expect(rsaNumbers(rsaPublicKey(n, e))).toEqual({ n, e });
    }),
    fuzzRuns(500),
  );
});

test.each([
  ["nothing", ""],
  ["another tag", "3106020105020103"],
  ["one number", "3003020105"],
  ["three numbers", "3009020105020103020103"],
  ["a byte behind the end", "300602010502010300"],
  ["a byte behind the numbers", "300702010502010300"],
  ["less than the length says", "3007020105020103"],
  ["a length in two bytes where one does", "308106020105020103"],
  ["a length in three bytes", "3083000006020105020103"],
  ["an indefinite length", "308002010502010300"],
  ["a number with a zero too many", "300702020005020103"],
  ["a negative number", "3006020185020103"],
  ["an empty number", "30050200020103"],
  ["another type than a number", "3006040105020103"],
])("rsaNumbers has none of %s", (_title, hex) => {
  expect(rsaNumbers(Buffer.from("3006020105020103", "hex"))).toBeDefined();
  expect(rsaNumbers(Buffer.from(hex, "hex"))).toBeUndefined();
});

test("any bytes have numbers or none, and those that have are the one writing of them", () => {
  const edit = fc.record({ place: fc.nat(der.length - 1), byte: fc.nat(255), cut: fc.nat(8) });
  fc.assert(
    fc.property(edit, ({ place, byte, cut }) => {
      const bytes = Buffer.from(der.subarray(0, der.length - cut));
      bytes[Math.min(place, bytes.length - 1)] = byte;
      const numbers = rsaNumbers(bytes);
      if (numbers !== undefined) expect(rsaPublicKey(numbers.n, numbers.e)).toEqual(bytes);
    }),
    fuzzRuns(1000),
  );
});
