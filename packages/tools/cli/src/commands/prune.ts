import { Command } from "commander";
import type { CommandIo } from "../command-io.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { addStoreOptions, readTarget, type StoreFlags } from "../operator/store-target.ts";
import { jsonLine } from "../output.ts";

const notes = `
The stores of a running platform prune by themselves, unless pruneIntervalMs is
0. Rows go in batches, while platforms go on working.

Exit codes:
  0  pruned   1  refused by the store   2  usage   3  store not reached
`;

export function pruneCommand(io: CommandIo): Command {
  const command = new Command("prune").description(
    "remove done keys, nonces and done tasks whose retention has ended from a platform's store",
  );
  return addStoreOptions(command)
    .option("--json", "print one JSON document")
    .addHelpText("after", notes)
    .action(async (flags: StoreFlags & { readonly json?: true }) => {
      const target = readTarget(flags);
      const { shown, location } = target;
      const removed = await withOperatorStore(target, async ({ idempotency, nonces, work }) => ({
        keys: await idempotency.prune(),
        nonces: (await nonces?.prune()) ?? 0,
        tasks: (await work?.prune()) ?? 0,
      }));
      if (flags.json === true) io.writeOut(jsonLine(removed));
      else if (location.engine === "redis") io.writeOut(`${shown} removes by itself what has expired\n`);
      else if (location.engine === "module") io.writeOut(`removed ${removed.keys} done keys from ${shown}\n`);
      else {
        const { keys, nonces, tasks } = removed;
        io.writeOut(`removed ${keys} done keys, ${nonces} nonces and ${tasks} done tasks from ${shown}\n`);
      }
    });
}
