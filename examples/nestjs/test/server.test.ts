import { expect, test } from "@jest/globals";
import { byProxy, eachOnce, exchange, recordedOnce, startExample } from "../../../test/support/example.ts";

test.each(["on-express", "on-fastify"])(
  "%s: pays a payout once, handles an event once, and ends",
  async (program) => {
    const example = await startExample(new URL(`../dist/${program}.js`, import.meta.url));
    try {
      expect(await exchange(example.url, byProxy)).toEqual(eachOnce);
      expect(example.records()).toEqual(recordedOnce);
    } finally {
      await example.stop();
    }
  },
);
