import { createRedisStores } from "@countersign/store-redis";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const key = "k";
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };

type Stores = ReturnType<typeof createRedisStores>;

const steps: Record<string, (stores: Stores) => Promise<unknown>> = {
  claim: ({ idempotency }) => idempotency.claim(key, claim),
  read: ({ idempotency }) => idempotency.read(key),
  heartbeat: ({ idempotency }) => idempotency.heartbeat(key, "a", 1_000),
  complete: ({ idempotency }) => idempotency.complete(key, "a"),
  release: ({ idempotency }) => idempotency.release(key, "a"),
  hold: ({ idempotency }) => idempotency.hold(key, "a", "why"),
  nonce: ({ nonces }) => nonces.claim(use),
};

const words = "acquired done in-flight held run absent ok lost fresh seen not-held".split(" ");
const oddNumbers = ["1800000000000000", "0", "-5", "1e3", "0x10", "9007199254740993", " 7", "7 ", ""];
const oddValues = [null, undefined, Number.NaN, Buffer.from("7"), Buffer.from("acquired"), ["7"], {}];
const fields = fc.oneof(
  fc.constantFrom(...words, ...oddNumbers, "\\", "\\u0041"),
  fc.string(),
  fc.integer(),
  fc.constantFrom(...oddValues, new String("7")),
);
// Right but for their number, or for one of them.
const nearly = fc
  .tuple(
    fc.constantFrom(...words),
    fc.array(fc.constantFrom("1800000000000000", "7", "7 ", "1e3", "0", "-5", "f"), { maxLength: 7 }),
  )
  .map(([word, rest]) => [word].concat(rest));
// Seldom made up by chance, and without them nothing but garbage may have been tried.
const right = fc.constantFrom<unknown[]>(
  "ok",
  "lost",
  "fresh",
  "seen",
  ["acquired", "7"],
  ["done", "f"],
  ["in-flight", "f", "7"],
  ["held", "f", "why"],
  "absent",
  ["running", "a", "7", "f", "7", ""],
);
const replies: fc.Arbitrary<unknown> = fc.oneof(
  right,
  nearly,
  fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSparseArray: true,
    withTypedArray: true,
  }),
  fields,
  fc
    .tuple(fc.constantFrom(...words), fc.array(fields, { maxLength: 6 }))
    .map(([word, rest]) => [word as unknown].concat(rest)),
  fc.array(fields, { maxLength: 7 }),
);

const isText = (value: unknown): value is string | Buffer =>
  typeof value === "string" || Buffer.isBuffer(value);

/** The reply as texts, if it is an array of them. */
function textsOf(reply: unknown): string[] | undefined {
  return Array.isArray(reply) && Array.from<unknown>(reply).every(isText) ? reply.map(String) : undefined;
}

/** What the reply says when it is exactly one that the scripts give; written apart from the code that is tested. */
function meaning(step: string, reply: unknown): string | undefined {
  if (step === "claim" || step === "read") {
    const joined = textsOf(reply)
      ?.map((text) => text.replaceAll("\n", " "))
      .join("\n");
    const forms =
      step === "claim"
        ? /^(?:acquired\n[0-9]{1,16}|done\n.*|in-flight\n.*\n[0-9]{1,16}|held\n.*\n.*)$/
        : /^(?:absent|(?:run|done|held)\n.*\n[0-9]{1,16}\n.*\n.*\n.*)$/;
    return joined !== undefined && forms.test(joined) ? joined.split("\n")[0] : undefined;
  }
  const text = isText(reply) ? String(reply) : undefined;
  const expected = step === "nonce" ? ["fresh", "seen"] : ["ok", "lost"];
  return text !== undefined && expected.includes(text) ? text : undefined;
}

/** One that is sound, so that not only garbage is tried. */
function soundReply(step: string): unknown {
  if (step === "claim") return ["acquired", "7"];
  if (step === "read") return ["absent"];
  return step === "nonce" ? "fresh" : "ok";
}

const above0 = { asymmetricMatch: (value: unknown) => typeof value === "number" && value > 0 };

function verdictOf(answer: unknown): string {
  if (answer === undefined) return "absent";
  if (typeof answer === "string") return answer;
  const { status, state } = answer as { status?: string; state?: string };
  return String(status ?? state);
}

describe.each(Object.entries(steps))("%s on any reply", (name, step) => {
  test("throws where the reply is not the pair of its own command", async () => {
    const ids = fc.oneof(fc.uuid(), fields, fc.anything());
    const pairs = fc.oneof(replies, fc.tuple(ids, replies), fc.tuple(ids, replies, replies));
    await fc.assert(
      fc.asyncProperty(pairs, async (reply) => {
        const stores = createRedisStores({
          sendCommand: async ([command]) => (command === "INFO" ? "" : reply),
        });
        await expect(step(stores)).rejects.toThrow(/another command|do not know/);
      }),
      fuzzRuns(500),
    );
  });

  test("gives the verdict that the reply spells out, with members of their types, or throws", async () => {
    let verdicts = 0;
    await fc.assert(
      fc.asyncProperty(replies, async (reply) => {
        const stores = createRedisStores({
          sendCommand: (command) => Promise.resolve(command[0] === "INFO" ? "" : [command.at(-1), reply]),
        });
        let answer: unknown;
        try {
          answer = await step(stores);
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          return;
        }
        verdicts += 1;
        expect(verdictOf(answer)).toBe(meaning(name, reply));
        if (verdictOf(answer) === "in-flight") expect(answer).toMatchObject({ remainingMs: above0 });
        for (const [member, value] of Object.entries(answer ?? {})) {
          if (member === "fence") expect(Number.isSafeInteger(value) && value > 0).toBe(true);
          else if (member === "remainingMs") expect(Number.isSafeInteger(value)).toBe(true);
          else if (typeof answer === "object") expect(typeof value).toBe("string");
        }
      }),
      { ...fuzzRuns(1_500), examples: [[soundReply(name)]] },
    );
    expect(verdicts).toBeGreaterThan(0);
  });
});
