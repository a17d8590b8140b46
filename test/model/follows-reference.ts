import * as fc from "fast-check";
import { commands } from "./commands.ts";
import type { Clock, Engine } from "./engine.ts";
import { type Real, World } from "./world.ts";

const startMs = 1_800_000_000_000;

/** The property of a right store: under any order of steps it answers as the reference does, and I1 to I3 hold. */
export function followsReference(engine: Engine): fc.IAsyncPropertyWithHooks<unknown[]> {
  const plans = fc.commands(commands(engine), { size: "+1", maxCommands: 60 });
  return fc.asyncProperty(plans, async (steps) => {
    const clock: Clock = { nowMs: startMs };
    const platform = await engine.open(clock);
    try {
      const world = new World(startMs);
      const real: Real = { platform, clock, prunes: engine.prunes };
      await fc.asyncModelRun(() => ({ model: world, real }), steps);
      await world.expectWayOut(real);
    } finally {
      await platform.close();
    }
  });
}
