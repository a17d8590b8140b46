import {
  type ContractFacility,
  defineCases,
  idempotencyStoreContract,
  nonceStoreContract,
} from "@countersign/store-contract";
import { afterAll, describe, test } from "@jest/globals";
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

describe.each(clients)("the contract over %s", (_client, connect) => {
  describe.each<[string, boolean, readonly ContractFacility[]]>([
    ["with a clock that the test moves", true, always],
    ["by the server's clock", false, [...always, "clock"]],
  ])("%s", (_clock, hasClock, without) => {
    const engine = { connect: () => connect(url ?? ""), hasClock, server };
    defineCases(
      idempotencyStoreContract(() => idempotencyHarness(engine), { without }),
      { describe: describeOnServer, test, title: "idempotency store" },
    );
    defineCases(
      nonceStoreContract(() => nonceHarness(engine), { without }),
      { describe: describeOnServer, test, title: "nonce store" },
    );
  });
});
