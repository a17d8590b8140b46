import type { PostgresPoolClient } from "./transaction.ts";

/** A client for as long as one transaction is open on it. */
export interface LentClient<Client> {
  readonly client: Client;
  /** From here on `query` throws. */
  end(): void;
}

/**
 * The client without a way into what runs on its connection later. Work can go on after it was given up, as behind a Promise.race:
 * its statements would commit alone or with somebody else's transaction, and completeIn() a key whose payout was rolled back.
 */
export function lendClient<Client extends PostgresPoolClient>(client: Client): LentClient<Client> {
  let hasEnded = false;
  const send: (...values: never[]) => unknown = client.query.bind(client);
  const query = (...values: never[]): unknown => {
    if (hasEnded) {
      throw new Error(
        "withPostgresTransaction: the transaction has ended; let the work settle after all of its statements",
      );
    }
    return send(...values);
  };
  const lent = new Proxy(client, {
    get(target, property): unknown {
      if (property === "query") return query;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { client: lent, end: () => void (hasEnded = true) };
}
