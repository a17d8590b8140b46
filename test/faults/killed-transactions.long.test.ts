// Rows 23 and 24: a process dies by SIGKILL at every step of a handler's transaction, another one gets the retries.
import { expect } from "@jest/globals";
import { steadyTest as test } from "../support/runs/steadily.ts";
import { servicePublicPem as publicKey } from "../support/signers/test-keys.ts";
import { describeEngines, newKey, storeKey } from "./engines.ts";
import type { TransactionPoint } from "./payer-app.mjs";
import { killedAt, pay, startPayer } from "./payers.ts";
import { payUntilDecided } from "./timing.ts";

describeEngines(["sqlite", "postgres", "mysql"], (ground) => {
  test.each<[TransactionPoint]>([["before BEGIN"], ["begun"], ["in pay"], ["savepoint released"]])(
    "row 23, SIGKILL %s: rollback; the retry pays, then 409",
    async (point) => {
      const key = newKey();
      const config = { engine: ground().engine, publicKey, recovery: "hold" } as const;
      const { second } = await killedAt(point, config, key);
      expect(await ground().payments(key)).toBe(0);
      expect((await payUntilDecided(second, key)).at(-1)).toMatchObject({ status: 200 });
      expect(await ground().payments(key)).toBe(1);
      expect(await pay(second, key)).toMatchObject({ status: 409, code: "already-processed" });
      expect(await ground().payments(key)).toBe(1);
    },
  );

  test("row 24, SIGKILL behind COMMIT, before the answer: the retry gets 409", async () => {
    const key = newKey();
    const config = { engine: ground().engine, publicKey, recovery: "hold" } as const;
    const { second } = await killedAt("committed", config, key);
    expect(await pay(second, key)).toMatchObject({ status: 409, code: "already-processed" });
    expect(await ground().payments(key)).toBe(1);
    const { store } = await startPayer(config);
    expect(await store.read(storeKey(key))).toMatchObject({ state: "done" });
  });
});
