import { afterEach, beforeEach, expect, test } from "@jest/globals";
import {
  begin,
  complete,
  engines,
  fingerprint,
  hold,
  runJson,
  runOn,
  type OperatorBench,
} from "./operator-bench.ts";

const dayMs = 86_400_000;

for (const engine of engines) {
  engine.describe(`countersign prune on ${engine.name}`, () => {
    let bench: OperatorBench;
    beforeEach(async () => {
      bench = await engine.open();
      const old = bench.behind(91 * dayMs);
      for (const key of ["done-1", "done-2", "run"]) {
        await old.idempotency.claim(key, { token: key, fingerprint, leaseMs: 1000, recovery: "rerun" });
      }
      for (const key of ["done-1", "done-2"]) await old.idempotency.complete(key, key);
      for (const nonce of ["a", "b", "c"]) {
        await old.nonces.claim({ scope: "keyid", nonce, token: nonce, retainMs: 60_000 });
      }
      await bench.nonces.claim({ scope: "keyid", nonce: "fresh", token: "first", retainMs: 60_000 });
      await complete(bench, "done-now");
      await hold(bench, "held");
      await begin(bench, "running");
    });
    afterEach(() => bench.close());

    test("removes what has expired and says how much, once", async () => {
      const [first] = await runJson(bench, "prune");
      expect(first).toEqual(engine.name === "Redis" ? { keys: 0, nonces: 0 } : { keys: 2, nonces: 3 });
      expect(await runJson(bench, "prune")).toEqual([{ keys: 0, nonces: 0 }]);
      const { code, out } = await runOn(bench, ["prune"]);
      expect(code).toBe(0);
      expect(out).toMatch(
        engine.name === "Redis" ? /removes by itself/ : /^removed 0 done keys and 0 nonces from \S+ \(tables/,
      );
    });

    test("removes no run, no held key and nothing that is still remembered", async () => {
      await runOn(bench, ["prune"]);
      const { idempotency, nonces } = bench;
      for (const key of ["run", "running"])
        expect(await idempotency.read(key)).toMatchObject({ state: "run" });
      expect(await idempotency.read("held")).toMatchObject({ state: "held" });
      expect(await idempotency.read("done-now")).toMatchObject({ state: "done" });
      const replay = { scope: "keyid", nonce: "fresh", token: "second", retainMs: 60_000 };
      expect(await nonces.claim(replay)).toBe("seen");
    });
  });
}
