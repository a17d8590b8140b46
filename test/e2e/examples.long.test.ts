// Each example of one framework, as its own process: a payout is paid once, an event is handled once.
import { describe, expect, test } from "@jest/globals";
import {
  byProxy,
  eachOnce,
  exchange,
  payWithTooManyLines,
  recordedOnce,
  startExample,
} from "../support/servers/example.ts";

// NestJS ends its process by the signal.
const examples: readonly (readonly [program: string, exitCode: number | null])[] = [
  ["fastify/dist/server.js", 0],
  ["hono/dist/server.js", 0],
  ["koa/dist/server.js", 0],
  ["express4-commonjs/src/server.js", 0],
  ["nestjs/dist/on-express.js", null],
  ["nestjs/dist/on-fastify.js", null],
];

describe.each(examples)("examples/%s", (program, exitCode) => {
  test("pays a payout once, handles an event once, refuses too many header lines, and ends", async () => {
    const example = await startExample(new URL(`../../examples/${program}`, import.meta.url));
    try {
      expect(await exchange(example.url, byProxy)).toEqual(eachOnce);
      expect(example.records()).toEqual(recordedOnce);
      // Of those that Node drops, one may be the X-Forwarded-For of the proxy.
      expect(await payWithTooManyLines(example.url, byProxy)).toBe(431);
      expect(example.records()).toEqual(recordedOnce);
      expect(await example.stop()).toBe(exitCode);
    } finally {
      await example.stop();
    }
  });
});
