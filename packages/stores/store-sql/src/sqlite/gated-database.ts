import { publishFailure } from "@countersign/core/internal";
import { refusedText } from "@countersign/idempotency/store";

type Method = (this: unknown, ...args: unknown[]) => unknown;

const connections = new WeakMap<object, object>();

/** The connection behind the `tx` that a handler gets, or what was given. */
export function connectionOf(tx: unknown): unknown {
  return (typeof tx === "object" && tx !== null && connections.get(tx)) || tx;
}

/**
 * A connection as a handler gets it: what is called on it, on its statements and on their iterators goes to the driver while the gate is
 * open, and throws afterwards (I26). It would commit by itself. One for each store: a statement that a handler keeps works in the next
 * transaction too.
 */
export class GatedDatabase<Db extends object> {
  readonly tx: Db;
  readonly #database: Db;
  #isOpen = false;
  #isReported = false;

  constructor(database: Db) {
    this.#database = database;
    this.tx = this.#gated(database);
    connections.set(this.tx, database);
  }

  open(): void {
    this.#isOpen = true;
    this.#isReported = false;
  }

  /** The first call that comes too late is reported. */
  close(): void {
    this.#isOpen = false;
  }

  #gated<T extends object>(target: T): T {
    // Not the target itself: a proxy could not gate its read-only members, such as `immediate` of transaction().
    const shadow: object = isMethod(target) ? () => {} : Object.create(Object.getPrototypeOf(target));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its members are those of the target
    const gated: T = new Proxy(shadow as T, {
      get: (_, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (name === "constructor") return member;
        if (!isMethod(member)) return this.#gatedResult(member);
        return (...args: unknown[]): unknown => {
          this.#assertTaken(target, name, args);
          const result = this.#call(member, target, args);
          // Such as stmt.raw(), which can be called on.
          return result === target ? gated : this.#gatedResult(result);
        };
      },
      set: (_, name, value) => Reflect.set(target, name, value, target),
      has: (_, name) => Reflect.has(target, name),
      apply: (_, self, args: unknown[]) =>
        isMethod(target) ? this.#gatedResult(this.#call(target, self, args)) : undefined,
    });
    return gated;
  }

  #call(method: Method, self: unknown, args: readonly unknown[]): unknown {
    if (!this.#isOpen) throw this.#refusal();
    return Reflect.apply(method, self, args);
  }

  /** What would end the transaction is not sent: what came after it would commit without the key. */
  #assertTaken(target: object, name: string | symbol, args: readonly unknown[]): void {
    const text = this.#isOpen ? sentText(target === this.#database, name, args) : undefined;
    const reason = text === undefined ? undefined : refusedText("sqlite", text);
    if (reason !== undefined) throw new Error(`SQLite: ${reason}`);
  }

  /** Rows are values; statements, iterators and the functions of `transaction()` reach the connection. */
  #gatedResult(result: unknown): unknown {
    if (result === this.#database) return this.tx;
    return reachesConnection(result) ? this.#gated(result) : result;
  }

  #refusal(): Error {
    const error = new Error(
      "SQLite: the handler's transaction is closed; do all of its work before the handler returns or throws",
    );
    if (!this.#isReported) {
      this.#isReported = true;
      publishFailure({
        guard: "transaction",
        code: "late-statement",
        message: "a handler has sent a statement by its tx after it had settled; the statement was not sent",
        error,
      });
    }
    return error;
  }
}

/** Methods of a connection whose first text is a name. */
const takesNames: ReadonlySet<string | symbol> = new Set(["function", "aggregate", "table"]);

/** The text of a call on the connection, or on what takes templates: a text that is bound to a statement is a value. */
function sentText(
  isConnection: boolean,
  name: string | symbol,
  args: readonly unknown[],
): string | undefined {
  const [first] = args;
  if (Array.isArray(first) && "raw" in first) return first.join("?");
  if (!isConnection || typeof first !== "string" || takesNames.has(name)) return undefined;
  return name === "pragma" ? `PRAGMA ${first}` : first;
}

function isMethod(member: unknown): member is Method {
  return typeof member === "function";
}

function reachesConnection(result: unknown): result is object {
  if (typeof result === "function") return true;
  if (typeof result !== "object" || result === null) return false;
  return ["run", "next"].some((name) => typeof Reflect.get(result, name) === "function");
}
