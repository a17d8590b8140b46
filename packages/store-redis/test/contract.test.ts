import {
  type ContractFacility,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { afterAll, describe, test } from "@jest/globals";
import { applicable } from "../../../test/support/contract.ts";
import { redisUrl } from "../../../test/support/engines.ts";
import { startPrivateRedis } from "../../../test/support/private-redis.ts";
import { clients } from "./clients.ts";
import { idempotencyHarness, nonceHarness } from "./harness.ts";

// Cases stop the server and fill its memory: it must be nobody else's. Without the binary the other cases run where Redis is.
const server = redisUrl === undefined ? undefined : await startPrivateRedis({ persist: true });
const url = server?.url ?? redisUrl;
const describeOnServer = url === undefined ? describe.skip : describe;
const always: readonly ContractFacility[] =
  server === undefined ? ["transaction", "fill", "engine", "durability"] : ["transaction"];

afterAll(() => server?.close());

describe.each(clients)("the contract over %s", (client, connect) => {
  const runs: [string, boolean, readonly ContractFacility[]][] = [
    ["with a clock that the test moves", true, always],
    ["by the server's clock", false, [...always, "clock"]],
  ];
  // The server's clock is the same for each client: two show it.
  describe.each(client.endsWith(" 6") ? runs : runs.slice(0, 1))("%s", (_clock, hasClock, without) => {
    const engine = { connect: () => connect(url ?? ""), hasClock, server };
    defineCases(applicable(idempotencyStoreContract(() => idempotencyHarness(engine), { without })), {
      describe: describeOnServer,
      test,
      title: "idempotency store",
    });
    defineCases(applicable(nonceStoreContract(() => nonceHarness(engine), { without })), {
      describe: describeOnServer,
      test,
      title: "nonce store",
    });
  });
});
