import type { TransactionAnswerStore } from "@countersign/idempotency";
import { TransactionResponseTable } from "../keys/response-table.ts";
import { Engine } from "./engine.ts";
import { type MysqlStoresOptions, resolveOptions } from "./options.ts";

/** Keeps responses of done keys for `retentionMs`, in a table of `migrate()`. Throws an OptionError on a wrong option. */
export function createMysqlAnswers<Tx>(options: MysqlStoresOptions<Tx>): TransactionAnswerStore<Tx> {
  const resolved = resolveOptions(options, "createAnswers");
  return new TransactionResponseTable(new Engine(resolved), resolved.retentionMs, resolved.database);
}
