import { createRedisStores } from "@countersign/store-redis";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { fuzzRuns } from "@countersign/test-support/runs/share.ts";

const key = "k";
const claim = { token: "a", fingerprint: "f", leaseMs: 60_000, recovery: "rerun" } as const;
const use = { scope: "s", nonce: "n", token: "a", retainMs: 60_000 };

type Stores = ReturnType<typeof createRedisStores>;

interface Step {
  readonly call: (stores: Stores) => Promise<unknown>;
  /** The script whose reply is made up; the others reply as {@link soundReplies}. */
  readonly fuzzed: keyof typeof soundReplies;
}

const steps: Record<string, Step> = {
  claim: {
    call: ({ idempotency }) => idempotency.claim(key, claim),
    fuzzed: "add",
  },
  read: { call: ({ idempotency }) => idempotency.read(key), fuzzed: "look" },
  heartbeat: { call: ({ idempotency }) => idempotency.heartbeat(key, "a", 1_000), fuzzed: "write" },
  complete: { call: ({ idempotency }) => idempotency.complete(key, "a"), fuzzed: "write" },
  release: { call: ({ idempotency }) => idempotency.release(key, "a"), fuzzed: "look" },
  hold: { call: ({ idempotency }) => idempotency.hold(key, "a", "why"), fuzzed: "look" },
  nonce: { call: ({ nonces }) => nonces.claim(use), fuzzed: "nonce" },
};

const heldRow = ["held", "b", "7", "f", "why", "-5", "2", "1800000000000", "hold", ""];
const soundReplies = { add: "7", look: heldRow, write: "7", nonce: "fresh" };

/** By the number of its arguments. */
function scriptOf(command: readonly string[]): keyof typeof soundReplies {
  const name = ({ 6: "look", 8: "nonce", 12: "add", 19: "write" } as const)[command.length];
  if (name === undefined) throw new Error(`no script has ${command.length} parts`);
  return name;
}

const words = "done held running free absent changed fresh seen".split(" ");
const oddNumbers = ["1800000000000000", "0", "-5", "1e3", "0x10", "9007199254740993", " 7", "7 ", ""];
const oddValues = [null, undefined, Number.NaN, Buffer.from("7"), Buffer.from("changed"), ["7"], {}];
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
    fc.array(fc.constantFrom("1800000000000000", "7", "7 ", "1e3", "0", "-5", "f", ""), { maxLength: 9 }),
  )
  .map(([word, rest]) => [word].concat(rest));
// Seldom made up by chance, and without them nothing but garbage may have been tried.
const right = fc.constantFrom<unknown[]>(
  "changed",
  "7",
  "fresh",
  "seen",
  ["absent"],
  heldRow,
  ["held", "a", "7", "f", "why", "-5", "2", "1800000000000", "hold", ""],
  ["done", "a", "7", "f", "", "9", "2", "1800000000000", "hold", ""],
  ["done", "a", "7", "f", "", "0", "2", "1800000000000", "hold", ""],
  ["free", "a", "7", "f", "", "9", "2", "1800000000000", "hold", ""],
  ["running", "a", "7", "f", "", "9", "2", "1800000000000", "hold", ""],
  ["running", "b", "7", "f", "", "9", "2", "1800000000000", "hold", ""],
  ["running", "b", "7", "f", "", "-9", "2", "1800000000000", "hold", ""],
  ["running", "b", "7", "f", "", "-9", "2", "1800000000000", "rerun", ""],
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

const digits = /^[0-9]{1,16}$/;

/** State, owner and rest of a row that is exactly as the script replies; written apart from the code that is tested. */
function rowIn(
  reply: unknown,
): { state: string; token: string; restMs: number; recovery: string } | undefined {
  const [
    state = "",
    token = "",
    fence = "",
    ,
    ,
    rest = "",
    version = "",
    nowMs = "",
    recovery = "",
    decision,
  ] = textsOf(reply) ?? [];
  if (textsOf(reply)?.length !== 10 || decision !== "") return undefined;
  const isRow = ["running", "held", "done", "free"].includes(state) && ["hold", "rerun"].includes(recovery);
  const areNumbers = [fence, version, nowMs.replace(/^-/, ""), rest.replace(/^-/, "")].every((text) =>
    digits.test(text),
  );
  return isRow && areNumbers ? { state, token, restMs: Number(rest), recovery } : undefined;
}

/** What the step must answer to this reply; undefined where it must throw. */
function meaning(step: string, reply: unknown): string | undefined {
  const text = isText(reply) ? String(reply) : undefined;
  const written = text !== undefined && digits.test(text);
  if (step === "nonce") return text === "fresh" || text === "seen" ? text : undefined;
  if (step === "heartbeat" || step === "complete")
    return written ? "ok" : text === "changed" ? "lost" : undefined;
  const isClaim = step === "claim";
  if (isClaim && written) return "acquired";
  const isAbsent = !isClaim && textsOf(reply)?.join() === "absent";
  const row = rowIn(reply);
  if (row === undefined && !isAbsent) return undefined;
  const isLive = row !== undefined && row.restMs > 0;
  if (step === "read") {
    const isShown = row?.state === "running" || row?.state === "held" || (row?.state === "done" && isLive);
    return isShown ? row.state : "absent";
  }
  if (!isClaim) return row?.state === "running" && row.token === "a" ? "ok" : "lost";
  if (row?.state === "held") return "held";
  if (row?.state === "done" && isLive) return "done";
  if (row?.state !== "running" || row.token === "a") return "acquired";
  if (isLive) return "in-flight";
  return row.recovery === "rerun" ? "acquired" : "held";
}

const above0 = { asymmetricMatch: (value: unknown) => typeof value === "number" && value > 0 };

function verdictOf(answer: unknown): string {
  if (answer === undefined) return "absent";
  if (typeof answer === "string") return answer;
  const { status, state } = answer as { status?: string; state?: string };
  return String(status ?? state);
}

describe.each(Object.entries(steps))("%s on any reply", (name, { call, fuzzed }) => {
  test("throws where the reply is not the pair of its own command", async () => {
    const ids = fc.oneof(fc.uuid(), fields, fc.anything());
    const pairs = fc.oneof(replies, fc.tuple(ids, replies), fc.tuple(ids, replies, replies));
    await fc.assert(
      fc.asyncProperty(pairs, async (reply) => {
        const stores = createRedisStores({
          sendCommand: async ([command]) => (command === "INFO" ? "" : reply),
        });
        await expect(call(stores)).rejects.toThrow(/another command|do not know/);
      }),
      fuzzRuns(500),
    );
  });

  test("gives the verdict that the reply spells out, with members of their types, or throws", async () => {
    let verdicts = 0;
    await fc.assert(
      fc.asyncProperty(replies, async (reply) => {
        const stores = createRedisStores({
          async sendCommand(command) {
            if (command[0] === "INFO") return "";
            const script = scriptOf(command);
            return [command.at(-1), script === fuzzed ? reply : soundReplies[script]];
          },
        });
        let answer: unknown;
        try {
          answer = await call(stores);
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
      { ...fuzzRuns(1_500), examples: [[soundReplies[fuzzed]]] },
    );
    expect(verdicts).toBeGreaterThan(0);
  });
});
