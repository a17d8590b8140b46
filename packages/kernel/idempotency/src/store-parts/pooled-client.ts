import { withDeadline } from "@countersign/core";
import { isPromiseLike } from "@countersign/core/internal";
import { watchCommits } from "./commit-watch.ts";

/** A connection taken out of a pool, as `pg` has it. */
export interface PooledClient {
  query(text: string): Promise<unknown>;
  /** Gives the connection back; `true` or an error ends it instead. */
  release(destroy?: boolean | Error): void;
  on?(event: "error", listener: (error: Error) => void): unknown;
  removeListener?(event: "error", listener: (error: Error) => void): unknown;
}

/** A pool with callbacks, as `pg` has, or promises. A promised client must have an `error` listener of its own until it is given. */
export interface ClientPool<Client extends PooledClient> {
  connect(): Promise<Client>;
  connect(
    callback: (error: Error | undefined, client: Client | undefined, done: () => void) => void,
  ): void | PromiseLike<Client | undefined>;
}

const rollbackTimeoutMs = 5_000;

/** Connections of a pool, each with an `error` listener while it is out. */
export const pooledClients = {
  take: takeClient,
  query: queryAlone,
  release: releaseClient,
  rollBack: rollBackClient,
  with: clientWith,
};

/** Takes a client that has an `error` listener from the first moment on. */
function takeClient<Client extends PooledClient>(pool: ClientPool<Client>): Promise<Client> {
  return new Promise((resolve, reject) => {
    // An `error` event without a listener ends this process, and the pool listens only to idle clients. Attached in the callback: a
    // session can end in the packet that begins it, before a promise resolves.
    let taken: Client | undefined;
    const take = (client: Client | undefined | void): void => {
      if (client === undefined || client === taken) return;
      taken = client;
      client.on?.("error", ignoreError);
      resolve(client);
    };
    const connecting = pool.connect((error, client) => {
      if (error) reject(error);
      else take(client);
    });
    // A pool that knows no callbacks. One that does gives nothing here, or a promise of nothing.
    if (isPromiseLike<Client | undefined | void>(connecting)) connecting.then(take, reject);
  });
}

/** Sends one statement, which commits by itself, on a client of its own. As the pool does, it ends one whose statement has failed. */
async function queryAlone<Result>(
  pool: ClientPool<PooledClient & { query(text: string, values: unknown[]): Promise<Result> }>,
  text: string,
  values: readonly unknown[],
): Promise<Result> {
  const client = await takeClient(pool);
  let result: Result;
  try {
    result = await watchCommits(client, () => client.query(text, [...values]));
  } catch (error) {
    releaseClient(client, true);
    throw error;
  }
  releaseClient(client);
  return result;
}

function releaseClient(client: PooledClient, destroy?: boolean): void {
  client.release(destroy);
  // Only now: from here on the pool listens, or the connection is gone.
  if (destroy !== true) client.removeListener?.("error", ignoreError);
}

/** Rolls back and releases. Never rejects: without an answer in time it ends the connection, and so the server rolls back. */
async function rollBackClient(client: PooledClient): Promise<void> {
  try {
    await withDeadline(client.query("ROLLBACK"), rollbackTimeoutMs, rollbackLate);
  } catch {
    releaseClient(client, true);
    return;
  }
  releaseClient(client);
}

/** The client with other `members`; all else of it works on itself. */
function clientWith<Client extends object>(
  client: Client,
  members: Readonly<Record<string, unknown>>,
): Client {
  return new Proxy(client, {
    get(target, property): unknown {
      if (typeof property === "string" && Object.hasOwn(members, property)) return members[property];
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function ignoreError(): void {}

function rollbackLate(): Error {
  return new Error("ROLLBACK was not answered in time");
}
