import {
  answerStoreContract,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { afterAll, describe } from "@jest/globals";
import { testContract } from "@countersign/test-support/runs/contract.ts";
import { histories } from "@countersign/test-support/runs/share.ts";
import { redisUrl } from "@countersign/test-support/servers/engines.ts";
import { startPrivateRedis } from "@countersign/test-support/servers/private-redis.ts";
import type { Client } from "./clients.ts";
import { answerHarness, idempotencyHarness, nonceHarness } from "./harness.ts";

/** Each with the clock that keeps the time of its stores: one that the test moves, or the server's. */
export type Runs = readonly (readonly [client: Client, clock: "moved" | "the server's"])[];

/** Defines the contracts of all stores over these clients, on one server. */
export async function defineContracts(runs: Runs): Promise<void> {
  // Cases stop the server and fill its memory: it must be nobody else's. Without the binary the other cases run where Redis is.
  const server = redisUrl === undefined ? undefined : await startPrivateRedis({ persist: true });
  const url = server?.url ?? redisUrl;
  const describeOnServer = url === undefined ? describe.skip : describe;
  const always =
    server === undefined
      ? (["transaction", "fill", "engine", "durability"] as const)
      : (["transaction"] as const);

  afterAll(() => server?.close());

  for (const [[client, connect], clock] of runs) {
    describe(`the contract over ${client}, by the clock: ${clock}`, () => {
      const hasClock = clock === "moved";
      const without = hasClock ? always : ([...always, "clock"] as const);
      const engine = { connect: () => connect(url ?? ""), hasClock, server };
      const contracts = {
        "idempotency store": idempotencyStoreContract(() => idempotencyHarness(engine), {
          without,
          histories,
        }),
        "nonce store": nonceStoreContract(() => nonceHarness(engine), { without }),
        "store of answers": answerStoreContract(() => answerHarness(engine), {
          without: [...without, "transaction"],
        }),
      };
      for (const [title, cases] of Object.entries(contracts)) {
        testContract(title, cases, describeOnServer);
      }
    });
  }
}
