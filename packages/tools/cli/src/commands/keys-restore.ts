import { Command } from "commander";
import {
  CommandError,
  exitCodes,
  UsageError,
  type CommandIo,
  type Finish,
  type Switches,
} from "../command-io.ts";
import { readStandardInput } from "../input.ts";
import { addEntryOptions, type Entry, type EntryFlags } from "../operator/decide.ts";
import { changedLine, decisionMarks, explainState, recordJson } from "../operator/key-report.ts";
import { addKeysOptions, readKeys, shownKey, type KeysFlags } from "../operator/key-text.ts";
import { withOperatorStore } from "../operator/operator-store.ts";
import { readAny } from "../operator/records.ts";
import type { KnownRecord, OperatorStore } from "../operator/store.ts";
import { addStoreOptions, readTarget } from "../operator/store-target.ts";
import { assertAskable, confirm, readDecision } from "../operator/work.ts";
import { jsonLine } from "../output.ts";
import { dayMs, readRetentionDays, type RetentionFlags } from "./keys-resolve.ts";

const restoredReason = "restored: paid before the restore";

type RestoreFlags = RetentionFlags & KeysFlags & EntryFlags & Switches<"unscoped" | "yes" | "json">;

const notes = `
After a restore of the store from a backup: keys that were paid since the backup
are unknown, and a retry would pay them again. Each is claimed, held for
"${restoredReason}", and resolved as done. A retry is then 409
idempotency-key-reused: nobody knows any more which payload was paid.

A key that the store knows (running, held, done) is left as it is, and printed.
Run the command again after a failure: it goes on. A crash leaves at most a held
key.

Give whole keys, with the guard's scope (payout:). On standard input a key in
double quotes is a JSON string. Without a terminal, --note and --yes are needed.
--retention-days has to be what the platform's stores have.

Example:
  STORE_URL=postgres://… countersign keys restore - --yes \\
    --note 'TICKET-4711: restored from the backup of 02:00' < paid-keys.txt

Exit codes:
  0  each key is done   1  one is not, not confirmed, or refused by the store
  2  usage   3  store not reached
`;

const meaning =
  "restored: these payments were made. A retry of a key that the store does not know is answered 409, and pays nothing.\n";

export function restoreCommand(io: CommandIo, finish: Finish): Command {
  const command = new Command("restore").description(
    "enter keys as done that were paid, and that a restored store does not know",
  );
  addKeysOptions(command)
    .option("--unscoped", "take keys without a scope, of a guard that has none")
    .option("--retention-days <n>", "for how long a key is remembered (default: 90)")
    .option("--yes", "do not ask");
  return addStoreOptions(addEntryOptions(command))
    .option("--json", "print a JSON document for each key")
    .addHelpText("after", notes)
    .action(async (given: readonly string[], flags: RestoreFlags) => {
      if (!(await restore(given, flags, io))) finish(exitCodes.otherwise);
    });
}

/** Whether each key is done. */
async function restore(given: readonly string[], flags: RestoreFlags, io: CommandIo): Promise<boolean> {
  const keys = readKeys(given, flags, readStandardInput);
  assertScopes(keys, flags);
  const target = readTarget(flags);
  const days = readRetentionDays(flags);
  assertAskable(flags.yes, "restore the keys", io);
  const show = flags.json === true ? io.writeError : io.writeOut;
  if (flags.yes !== true)
    show(`store  ${target.shown}\n${keys.map((key) => `key    ${shownKey(key)}\n`).join("")}${meaning}`);
  const entry = await readDecision(flags, io);
  if (flags.yes !== true) await confirm("restore", io);
  const counts = { restored: 0, known: 0, open: 0 };
  const work = async ({ idempotency }: OperatorStore): Promise<void> => {
    for (const key of keys) {
      // oxlint-disable-next-line no-await-in-loop -- a store may have one connection
      const { restored, record } = await restoreKey(idempotency, key, entry);
      counts[restored ? "restored" : record.state === "done" ? "known" : "open"] += 1;
      if (flags.json === true) io.writeOut(jsonLine({ key, restored, ...recordJson(record) }));
      else if (!restored) io.writeOut(knownLine(key, record));
      else {
        const { decision = { ...entry, at: io.clock() * 1000 } } = record;
        io.writeOut(changedLine({ key, record }, ["unknown", restoredReason, "done"], decision));
      }
    }
  };
  await withOperatorStore(target, work, { retentionMs: days === undefined ? undefined : days * dayMs });
  const { restored, known, open } = counts;
  if (flags.json !== true)
    io.writeOut(`${restored} restored, ${known} done already, ${open} not done: ${target.shown}\n`);
  return open === 0;
}

function knownLine(key: string, record: KnownRecord): string {
  const known = [`${record.state}: ${explainState(record, key)}`, ...decisionMarks(record)].join("; ");
  return `${shownKey(key)}: known, left as it is: ${known}\n`;
}

// The key of a payout without its scope is another key: a retry would not find it, and pay.
function assertScopes(keys: readonly string[], { unscoped }: RestoreFlags): void {
  const bare = unscoped === true ? undefined : keys.find((key) => !/^[^:]+:./.test(key));
  if (bare === undefined) return;
  throw new UsageError(
    `${shownKey(bare)}: has no scope, such as payout: in front; a guard without one takes --unscoped`,
  );
}

// Not random: a command that is run again goes on with what one before left. Who resolves or reopens the key takes it away.
const token = "countersign keys restore";
// The payload that was paid is unknown. No digest looks like this.
const fingerprint = "restored";
const leaseMs = 30_000;

/** The key as it is now, and whether this call made it done. Leaves a key that the store knows as it is. */
async function restoreKey(
  store: OperatorStore["idempotency"],
  key: string,
  entry: Entry,
): Promise<{ readonly restored: boolean; readonly record: KnownRecord }> {
  const restored = await enter(store, key, entry);
  const record = await readAny(store, key);
  if (record !== undefined) return { restored, record };
  throw new CommandError(`${shownKey(key)}: has changed meanwhile, look at it again`, exitCodes.otherwise);
}

async function enter(store: OperatorStore["idempotency"], key: string, entry: Entry): Promise<boolean> {
  const known = await readAny(store, key);
  if (known?.state === "free" ? known.fingerprint === fingerprint : known && known.token !== token)
    return false;
  if (known?.state !== "held") {
    const { status } = await store.claim(key, { token, fingerprint, leaseMs, recovery: "hold" });
    if (status === "acquired") await store.hold(key, token, restoredReason);
  }
  const held = await store.read(key);
  if (held?.state !== "held" || held.token !== token) return false;
  return (await store.resolve(key, "done", { fence: held.fence, ...entry })) === "ok";
}
