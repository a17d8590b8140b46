import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { engines, hold, spawnCli, type OperatorBench } from "./operator-bench.ts";

for (const engine of engines) {
  engine.describe(`countersign keys resolve as a process on ${engine.name}`, () => {
    let bench: OperatorBench;
    beforeEach(async () => {
      bench = await engine.open();
    });
    afterEach(() => bench.close());

    test.each([
      [["keys", "resolve", "key", "--as", "done", "--yes"], 0],
      [["keys", "resolve", "other", "--as", "done", "--yes"], 1],
      [["keys", "held"], 0],
      [["prune"], 0],
      // A connection that stayed open would keep it alive.
    ])(
      "%j ends by itself as a process of its own",
      async (args, code) => {
        await hold(bench, "key");
        const [, url = "", ...names] = bench.flags;
        const ended = await spawnCli([...args, ...names], { env: { STORE_URL: url } });
        expect(ended).toMatchObject({
          code,
          err: code === 0 ? "" : expect.stringMatching(/^error: [^\n]*\n$/),
        });
      },
      20_000,
    );
  });
}
