import { publishFailure } from "@countersign/core/internal";
import type { SqlGrammar } from "./sql-reader.ts";
import { refusedText, withoutText } from "./transaction-texts.ts";

/** How a handler left its statements when its `tx` was closed. */
export interface ClosedStatements {
  /** How many statements were sent and not answered when the gate was closed. The library has answered all of them since. */
  readonly unanswered: number;
  /** True if a driver reported a changed row or a called procedure. False if none did: some statements change rows without a report. */
  readonly hasWritten: boolean;
  /** How many statements an engine may count as commands although they changed no row: they matched none, only locked some, or failed. */
  readonly idleCommands: number;
}

/** `write`: a driver reported a changed row or a called procedure. `idle`: a command that changed none. Undefined: nothing is known. */
export type StatementEffect = "write" | "idle" | undefined;

/** The library's own statement that ends a transaction. */
type EndStatement = "COMMIT" | "ROLLBACK";

/**
 * Lets a handler's statements through while the handler runs, and rejects them from the moment in which it has settled (I26). One
 * for each transaction. Statements of the store itself do not pass here.
 */
export class StatementGate {
  readonly #library: string;
  readonly #dialect: SqlGrammar;
  #isOpen = true;
  #unanswered = 0;
  #waiting: (() => void)[] = [];
  #hasWritten = false;
  #idleCommands = 0;
  #end: EndStatement | undefined;
  #isReported = false;

  /** `library`: its name in messages, such as `Prisma`. `dialect`: of the texts of its statements. */
  constructor(library: string, dialect: SqlGrammar) {
    this.#library = library;
    this.#dialect = dialect;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** True from the moment in which the library ends the transaction. */
  get isEnding(): boolean {
    return this.#end !== undefined;
  }

  /** Opens the gate for the next handler of the same transaction. */
  open(): void {
    this.#isOpen = true;
    this.#hasWritten = false;
    this.#idleCommands = 0;
  }

  /** Rejects every statement from the call on. Resolves when the library has answered those that were sent before. */
  async close(): Promise<ClosedStatements> {
    this.#isOpen = false;
    const unanswered = this.#unanswered;
    if (unanswered > 0) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    return { unanswered, hasWritten: this.#hasWritten, idleCommands: this.#idleCommands };
  }

  /** Closes the gate for all but the statement by which the library ends the transaction; after a COMMIT that fails it sends ROLLBACK. */
  closeFor(end: EndStatement): void {
    this.#isOpen = false;
    this.#end = end;
  }

  /** Closes the gate for good: the library may lend the connection to somebody else. */
  end(): void {
    this.#isOpen = false;
    this.#end = undefined;
  }

  /** True if `text` is the statement by which the library ends the transaction now. */
  isEnd(text: unknown): boolean {
    if (this.#end === undefined || typeof text !== "string") return false;
    const end = text.replace(/;\s*$/, "").trim().toUpperCase();
    return end === this.#end || end === "ROLLBACK";
  }

  /**
   * Sends a statement that the library answers by a promise. Rejects without sending it once the gate is closed. `effectOf` says what a result
   * tells of the statement's effect; default: nothing.
   */
  send<T>(statement: () => Promise<T>, effectOf?: (result: T) => StatementEffect): Promise<T> {
    if (!this.#isOpen) return this.refuse();
    const answered = this.begin();
    let sent: Promise<T>;
    try {
      sent = statement();
    } catch (error) {
      answered("idle");
      throw error;
    }
    sent.then(
      (result) => answered(effectOf?.(result)),
      () => answered("idle"),
    );
    return sent;
  }

  /** Counts a statement as sent. The returned function counts it as answered, with its effect; later calls of it do nothing. */
  begin(): (effect?: StatementEffect) => void {
    this.#unanswered += 1;
    let isAnswered = false;
    return (effect) => {
      if (isAnswered) return;
      isAnswered = true;
      if (effect === "write") this.#hasWritten = true;
      if (effect === "idle") this.#idleCommands += 1;
      this.#unanswered -= 1;
      if (this.#unanswered > 0) return;
      for (const resolve of this.#waiting.splice(0)) resolve();
    };
  }

  /**
   * Why a handler's statement of this text must not be sent; undefined if it may. It would end the transaction, and what comes after it would
   * commit without the key.
   */
  forbids(text: string | undefined): Error | undefined {
    const reason = text === undefined ? withoutText : refusedText(this.#dialect, text);
    return reason === undefined ? undefined : new Error(`${this.#library}: ${reason}`);
  }

  /** A rejected promise for a statement, by default a late one. It counts as handled: a statement that nobody awaits does not end the process. */
  refuse(reason = this.refusal()): Promise<never> {
    const refused = Promise.reject(reason);
    refused.catch(() => {});
    return refused;
  }

  /** The error of a late statement. The first one of a transaction is reported. */
  refusal(): Error {
    const message = `${this.#library}: the handler's transaction is closed; await every statement before the handler returns or throws`;
    const error = new Error(message);
    if (!this.#isReported) {
      this.#isReported = true;
      publishFailure({
        guard: "transaction",
        code: "late-statement",
        message:
          "a handler has sent a statement by its tx after it had settled, or after its run had been given up; the statement was not sent",
        error,
      });
    }
    return error;
  }
}
