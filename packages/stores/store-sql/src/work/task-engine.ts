import type { Awaitable, TransactionMode } from "@countersign/idempotency";
import type { Row, Steps } from "@countersign/idempotency/store";
import type { Chain } from "./chain.ts";
import type { TaskDialect, TaskTables } from "./dialect.ts";
import type { Sql } from "../sql/sql.ts";

/** A step in the caller's transaction. */
export interface StepWithin<Tx> {
  readonly tx: Tx;
  /** As the caller knows it, for messages. */
  readonly step: "add" | "finish" | "advance";
  /** True while the caller's handler runs: then the step is one of the handler's statements (I26). */
  readonly isHandlers: boolean;
}

/** What a statement knows of its surroundings, as SQL. */
export interface Moment {
  /** Microseconds since 1970, the same throughout the statement. */
  readonly now: Sql;
  /** Whether the statement may run here. It may fail instead. */
  readonly guard: Sql;
}

/** How an engine runs the statements of tasks. It decides nothing. */
export interface TaskEngine<Tx, Mode extends TransactionMode = TransactionMode> {
  /** One word for metrics, such as `postgresql`. */
  readonly engine: string;
  readonly mode: Mode;
  /** Begins messages. */
  readonly name: string;
  readonly dialect: TaskDialect;
  readonly names: TaskTables;
  readonly taskRetentionMs: number;
  /** For a statement by itself, for one of {@link TaskEngine.write}, and for one of {@link TaskEngine.within}. */
  moment(of: "look" | "write" | "within"): Moment;
  /** Throws while the engine must not be used. */
  assertUsable(): void;
  /** Runs a statement that reads what has committed. */
  look(statement: Sql): Promise<readonly Row[]>;
  /**
   * Runs chains that have nothing to do with each other, each as a whole, so that they have committed. Throws in somebody's transaction.
   * Gives what the first of them gives.
   */
  write(chains: readonly Chain[]): Promise<readonly Row[]>;
  /** Runs a chain in the caller's transaction. Throws where none is open, and has written nothing then. */
  within(step: StepWithin<Tx>, chain: Chain): Steps<readonly Row[]>;
  /** Removes done tasks whose retention has ended. Returns how many. */
  prune(): Awaitable<number>;
  /** Ends the engine's timers. */
  close(): void;
}
