import { CommandError, exitCodes, memberOf, messageOf } from "../command-io.ts";
import {
  doubtsOf,
  isError,
  schemaVersionOf,
  versionDoubts,
  type Doubt,
  type Row,
} from "../doctor/findings.ts";
import { printableLine } from "../output.ts";
import type { Engine, OperatorStore, Remembered } from "./store.ts";
import { causesOf, oneLine, openedInTime, queryTimeoutMs, storeFailure } from "./store-failure.ts";
import { placeFlags, type StoreLocation, type StoreTarget } from "./store-target.ts";

type Names = Readonly<Record<"schema" | "table", string>>;

type Columns = Readonly<Record<string, unknown>>;

export interface SqlConnection<Connection> {
  readonly connection: Connection;
  readonly query: (text: string, values: readonly string[]) => Promise<readonly Columns[]>;
  /** Gives a hanging server a moment to say goodbye. */
  readonly close: () => Promise<void>;
}

/** A column of `serverQuery`, as text. */
export type Fact = (name: string) => string;

/** What differs between the servers of SQL. */
interface SqlServer<Connection> extends Pick<Required<Engine>, "tables"> {
  readonly schemaVersion: number;
  readonly migrate: (connection: Connection, names: Names) => Promise<void>;
  /** `timeoutMs` is for each statement; 0 for no limit. */
  readonly connect: (location: StoreLocation, timeoutMs: number) => Promise<SqlConnection<Connection>>;
  readonly stores: (
    connection: Connection,
    options: Names & Remembered & { readonly pruneIntervalMs: 0 },
  ) => Omit<OperatorStore, "close"> & { ready(): Promise<void>; close(): void };
  readonly versionTable: (names: Names, connection: Connection) => string;
  /** The tables in a message. */
  readonly placeOf: (names: Names) => string;
  /** The `place` of other tables in this database than those of the parameter. */
  readonly placesQuery: string;
  /** The `name` of each table that is there, sorted. */
  readonly madeQuery: (names: Names) => readonly [text: string, values: readonly string[]];
  /** SQLSTATE or errno. */
  readonly noSuchTable: string | number;
  /** One row with the settings, and the server's time as `now_ms`. */
  readonly serverQuery: (names: Names) => readonly [text: string, values: readonly string[]];
  readonly rows: readonly Row<Fact>[];
  readonly tableDoubts?: (connection: Connection, names: Names) => Promise<readonly Doubt[]>;
}

/** What the commands do is the same on each server. They check the names of the tables before they connect. */
export function sqlEngine<Connection>(server: SqlServer<Connection>): Required<Engine> {
  type Connected = SqlConnection<Connection>;

  function connect(target: StoreTarget, timeoutMs: number): Promise<Connected> {
    server.tables(target);
    return server.connect(target.location, timeoutMs);
  }

  async function connected<T>(
    target: StoreTarget,
    timeoutMs: number,
    work: (opened: Connected, names: Names) => Promise<T>,
  ): Promise<T> {
    const opened = await connect(target, timeoutMs);
    try {
      return await work(opened, namesOf(target));
    } finally {
      await opened.close();
    }
  }

  async function readVersion({ connection, query }: Connected, names: Names) {
    try {
      // MariaDB's tables have no column `oldest` before a later version.
      const [row] = await query(`SELECT * FROM ${server.versionTable(names, connection)} WHERE id = 1`, []);
      // Without a row a migration has ended early.
      return row && schemaVersionOf(row);
    } catch (error) {
      if (isMissing(error, server.noSuchTable)) return undefined;
      throw error;
    }
  }

  function storesOf({ connection }: Connected, names: Names, remembered: Remembered = {}) {
    return server.stores(connection, { ...names, ...remembered, pruneIntervalMs: 0 });
  }

  async function assertReady(opened: Connected, names: Names): Promise<void> {
    const stores = storesOf(opened, names);
    try {
      await stores.ready();
    } finally {
      stores.close();
    }
  }

  /** Why the stores themselves refuse the tables, with the remedy. */
  async function refusals(
    opened: Connected,
    names: Names,
    location: StoreLocation,
  ): Promise<readonly Doubt[]> {
    try {
      await assertReady(opened, names);
      return [];
    } catch (error) {
      const failure = storeFailure(location, error);
      if (failure.exitCode === exitCodes.unreachable) throw failure;
      return [["tables-refused", oneLine(location.hide(messageOf(error)))]];
    }
  }

  async function listMade({ query }: Connected, names: Names): Promise<readonly string[]> {
    return (await query(...server.madeQuery(names))).map(({ name }) => String(name));
  }

  return {
    tables: server.tables,

    async open(target, remembered) {
      const opened = await connect(target, queryTimeoutMs);
      const { query, close } = opened;
      const names = namesOf(target);
      const elsewhere = async (): Promise<string[]> => {
        const rows = await query(server.placesQuery, [server.placeOf(names)]);
        return rows.map(({ place }) => String(place));
      };
      try {
        const stores = storesOf(opened, names, remembered);
        await openedInTime(target.location.shown, stores.ready());
        return {
          ...stores,
          elsewhere,
          async close() {
            stores.close();
            await close();
          },
        };
      } catch (error) {
        const isElsewhere = isMissing(error, server.noSuchTable);
        const failure = isElsewhere ? await wrongPlace(target, error, elsewhere) : error;
        await close();
        throw failure;
      }
    },

    inspect: (target) =>
      connected(target, queryTimeoutMs, async (opened, names) => {
        const sentMs = Date.now();
        const [row] = await opened.query(...server.serverQuery(names));
        const receivedMs = Date.now();
        if (row === undefined) throw new Error("the server said nothing about itself");
        const version = await readVersion(opened, names);
        const doubts = [
          ...doubtsOf(server.rows, (name) => String(row[name])),
          ...versionDoubts(version, server.schemaVersion, server.placeOf(names)),
        ];
        const ofTables = (await server.tableDoubts?.(opened.connection, names)) ?? [];
        const found = [...doubts, ...ofTables];
        const refused = found.some(isError) ? [] : await refusals(opened, names, target.location);
        const clock = { theirsMs: Number(row["now_ms"]), sentMs, receivedMs };
        return { doubts: [...found, ...refused], clock };
      }),

    migrate: (target) =>
      connected(target, 0, async (opened, names) => {
        const before = (await readVersion(opened, names))?.version ?? null;
        const found = await listMade(opened, names);
        await server.migrate(opened.connection, names);
        await assertReady(opened, names);
        // Tables of a later release that takes this one beside it are left as they are.
        const version = (await readVersion(opened, names))?.version ?? server.schemaVersion;
        const created = (await listMade(opened, names)).filter((name) => !found.includes(name));
        return { version, before, created };
      }),
  };
}

function namesOf({ schema = "countersign", table = "countersign" }: StoreTarget): Names {
  return { schema, table };
}

function isMissing(error: unknown, noSuchTable: string | number): boolean {
  return causesOf(error).some((one) => [memberOf(one, "code"), memberOf(one, "errno")].includes(noSuchTable));
}

/** Creating tables there would make an empty store. */
async function wrongPlace(
  { shown, location }: StoreTarget,
  error: unknown,
  elsewhere: () => Promise<readonly string[]>,
): Promise<CommandError> {
  const places = await elsewhere().catch(() => []);
  const seen = places.length === 0 ? "none is in this database" : `in this database are ${places.join(", ")}`;
  const message =
    `${shown}: there are no such tables: this looks like another database or schema than the platform's; ` +
    `name the right one by STORE_URL, ${placeFlags(location)}; ${printableLine(seen)}`;
  return new CommandError(message, exitCodes.otherwise, { cause: error });
}
