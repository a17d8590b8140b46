import { pooledClients } from "@countersign/idempotency/store";
import { explained, idleSession, sqlStateOf } from "./errors.ts";
import type { PostgresPoolClient } from "./queryable.ts";

export interface LentClient<Client> {
  readonly client: Client;
  /** From here on `query` throws. */
  end(): void;
  /** Why the server has ended the session, or else the error itself. */
  reasonOf(error: unknown): unknown;
}

const caller = "withPostgresTransaction";

/**
 * Lends the client for one transaction. Work that goes on afterwards, as after a Promise.race, would commit alone or in somebody else's.
 * Keeps why the server ended the session: the next statement only finds it gone.
 */
export function lendClient<Client extends PostgresPoolClient>(client: Client): LentClient<Client> {
  let hasEnded = false;
  let endedBy: Error | undefined;
  const listener = (error: Error): void => void (endedBy ??= error);
  client.on?.("error", listener);
  const reasonOf = (error: unknown): unknown => {
    const reason = endedBy ?? error;
    return sqlStateOf(reason) === idleSession ? explained(caller, { place: "", migrate: "" }, reason) : error;
  };
  const send: (...values: never[]) => unknown = client.query.bind(client);
  const query = (...values: never[]): unknown => {
    if (hasEnded) {
      throw new Error(
        `${caller}: the transaction has ended; let the work settle after all of its statements`,
      );
    }
    const result = send(...values);
    return result instanceof Promise ? withReason(result, reasonOf) : result;
  };
  return {
    client: pooledClients.with(client, { query }),
    reasonOf,
    end() {
      hasEnded = true;
      client.removeListener?.("error", listener);
    },
  };
}

async function withReason(
  result: PromiseLike<unknown>,
  reasonOf: (error: unknown) => unknown,
): Promise<unknown> {
  try {
    return await result;
  } catch (error) {
    throw reasonOf(error);
  }
}
