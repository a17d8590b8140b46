import { setImmediate } from "node:timers";
import { expect, test } from "@jest/globals";
import { workSlices } from "@countersign/core/internal";

function useUp(): void {
  while (!workSlices.over);
}

test("what waits for a slice does not go on in the turn that used one up", async () => {
  const said: string[] = [];
  const waited = new Promise<void>((resolve) => {
    setImmediate(() => {
      // Its slice begins below, before this: its end is due right behind this.
      useUp();
      setImmediate(() => said.push("another turn"));
      const next = workSlices.next();
      // oxlint-disable-next-line promise/prefer-await-to-then -- within this immediate
      resolve(next.then(() => void said.push("next slice")));
    });
  });
  expect(workSlices.over).toBe(false);
  await waited;
  expect(said).toEqual(["another turn", "next slice"]);
});
