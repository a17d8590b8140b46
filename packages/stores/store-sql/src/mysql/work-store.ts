import { answerOf, runSteps, type Row, type Steps } from "@countersign/idempotency/store";
import { inTurn, type Chain } from "../work/chain.ts";
import type { TaskDialect } from "../work/dialect.ts";
import { PrunedTable } from "../sql/pruned-table.ts";
import { fragment, raw, type Sql } from "../sql/sql.ts";
import type { Moment, StepWithin, TaskEngine } from "../work/task-engine.ts";
import { TaskStore } from "../work/tasks.ts";
import { notOpen, type Engine } from "./engine.ts";
import { errnoOf, outOfRange } from "./errors.ts";
import type { ResolvedMysqlOptions } from "./options.ts";
import { waitingFor, zeroIfOpen } from "./statement-parts.ts";
import type { TableNames } from "./table-names.ts";
import { taskDialect } from "./task-dialect.ts";

const name = "mysql work store";

export function mysqlWorkStore<Tx>(
  server: Engine<Tx>,
  options: ResolvedMysqlOptions<Tx>,
): TaskStore<Tx, "async"> {
  return new TaskStore(new MysqlTasks(server, options));
}

/** Runs each step of its own in a transaction, one statement after the other. */
class MysqlTasks<Tx> extends PrunedTable<"async"> implements TaskEngine<Tx, "async"> {
  readonly #server: Engine<Tx>;
  readonly #options: ResolvedMysqlOptions<Tx>;
  readonly dialect: TaskDialect = taskDialect;
  readonly names: TableNames;
  readonly taskRetentionMs: number;

  constructor(server: Engine<Tx>, options: ResolvedMysqlOptions<Tx>) {
    super(server, name, {
      table: server.names.tasks,
      key: ["digest"],
      until: "until_us",
      // Each by the retention of the process that ended it: a command knows none.
      isExpired: (now) => fragment`until_us <= ${now}`,
    });
    this.#server = server;
    this.#options = options;
    this.names = options.names;
    this.taskRetentionMs = options.taskRetentionMs;
  }

  assertUsable(): void {
    this.gate.assertUsable();
  }

  moment(of: "look" | "write" | "within"): Moment {
    return { now: this.#server.now(), guard: raw(of === "within" ? `1 + ${zeroIfOpen} = 1` : "1 = 1") };
  }

  look({ text, values }: Sql): Promise<readonly Row[]> {
    return this.#server.alone(name, text, values);
  }

  write(chains: readonly Chain[]): Promise<readonly Row[]> {
    const bound = waitingFor(this.#options.lockTimeoutMs);
    return this.#server.run(name, async (tx) => {
      const send = async (statements: readonly Sql[]): Promise<readonly Row[]> => {
        const rows: Row[] = [];
        for (const { text, values } of statements) {
          // oxlint-disable-next-line no-await-in-loop -- one statement after the other
          rows.push(...(await this.#server.database.query(tx, `${bound}${text}`, values)));
        }
        return rows;
      };
      let first: readonly Row[] | undefined;
      for (const chain of chains) {
        // oxlint-disable-next-line no-await-in-loop -- as above
        const rows = await runSteps(inTurn(chain, this.dialect.among, send));
        first ??= rows;
      }
      return first ?? [];
    });
  }

  *within({ tx, step, isHandlers }: StepWithin<Tx>, chain: Chain): Steps<readonly Row[]> {
    yield* answerOf(this.#server.assertOpen(tx, { store: name, step }));
    const send = async (statements: readonly Sql[]): Promise<readonly Row[]> => {
      try {
        return await this.#server.send(
          tx,
          name,
          statements.map(({ text, values }) => [text, values]),
        );
      } catch (error) {
        throw errnoOf(error) === outOfRange ? notOpen({ store: name, step }) : error;
      }
    };
    const gate = isHandlers ? this.#server.database.gateOf(tx) : undefined;
    return yield* inTurn(chain, this.dialect.among, (statements) =>
      gate === undefined
        ? send(statements)
        : gate.send(
            () => send(statements),
            () => "write",
          ),
    );
  }
}
