import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { ServiceBench, type ReceivedEvent } from "./service-bench.ts";

const bench = new ServiceBench();
beforeAll(async () => {
  await bench.open();
  await bench.register();
});
afterAll(() => bench.close());

type Command =
  | { readonly kind: "buyer" | "seller"; readonly id: number; readonly status: string }
  | { readonly kind: "repay" | "remind"; readonly id: number };

const ids = fc.nat({ max: 2 });
const command = fc.oneof(
  fc.record({
    kind: fc.constantFrom("buyer" as const, "seller" as const),
    id: ids,
    status: fc.constantFrom("PENDING", "ACTIVE", "INACTIVE", "REJECTED", "SUSPENDED"),
  }),
  fc.record({ kind: fc.constantFrom("repay" as const, "remind" as const), id: ids }),
) satisfies fc.Arbitrary<Command>;

async function run(scope: string, one: Command): Promise<number> {
  const id = `${scope}-${one.id}`;
  const { status } =
    "status" in one
      ? await bench.post(`/sandbox/${one.kind}s/${id}/status`, { status: one.status })
      : await bench.post(`/sandbox/payment-requests/${id}/${one.kind}`);
  return status;
}

/** The events about one object, in their order. */
function eventsAbout(field: string, id: string): readonly ReceivedEvent[] {
  return bench.events.filter(({ data }) => data[field] === id);
}

async function expectChain(kind: "buyer" | "seller", id: string): Promise<void> {
  const changes = eventsAbout(`${kind}_id`, id).map(({ data }) => data);
  let status: unknown = "PENDING";
  for (const { old_status, new_status } of changes) {
    expect(old_status).toBe(status);
    expect(new_status).not.toBe(status);
    status = new_status;
  }
  const answer = await bench.get(`/sandbox/${kind}s/${id}`);
  if (changes.length > 0 || answer.status !== 404) expect(answer.body["status"]).toBe(status);
}

async function expectRepaidLast(id: string): Promise<void> {
  const types = eventsAbout("payment_request_id", id).map(({ type }) => type);
  const repaid = types.indexOf("payment_request.repayment.repaid");
  const { body } = await bench.get(`/sandbox/payment-requests/${id}`);
  expect(body["status"]).toBe(repaid < 0 ? "PENDING_REPAYMENT" : "CLOSED");
  if (repaid >= 0) expect(repaid).toBe(types.length - 1);
}

test("what GET shows is what the last event said, and every change begins where the one before it ended", async () => {
  const runs = fc.asyncProperty(fc.array(command, { minLength: 1, maxLength: 30 }), async (commands) => {
    const scope = randomUUID();
    bench.webhooks.length = 0;
    for (let id = 0; id <= 2; id += 1) {
      bench.sandbox.createPaymentRequest({ payment_request_id: `${scope}-${id}`, due_date: "2024-01-01" });
    }
    // Several at once, so that changes of one object meet.
    const statuses = await Promise.all(commands.map((one) => run(scope, one)));
    await bench.sandbox.deliveries.idle();
    expect(statuses.filter((status) => status !== 200 && status !== 409)).toEqual([]);
    const silent = commands.filter((one) => "status" in one && one.status === "PENDING").length;
    const accepted = statuses.filter((status) => status === 200).length;
    expect(bench.webhooks.length).toBeLessThanOrEqual(accepted);
    expect(bench.webhooks.length).toBeGreaterThanOrEqual(accepted - silent);
    for (let id = 0; id <= 2; id += 1) {
      await expectChain("buyer", `${scope}-${id}`);
      await expectChain("seller", `${scope}-${id}`);
      await expectRepaidLast(`${scope}-${id}`);
    }
  });
  await fc.assert(runs, { numRuns: 40 });
}, 30_000);
