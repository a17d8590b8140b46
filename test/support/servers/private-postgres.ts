import { startPostgresServer, type PostgresServer } from "./postgres-server.mjs";
import { reportMissing } from "./server-binaries.mjs";

export type PrivatePostgres = PostgresServer;

/**
 * A PostgreSQL for tests that stop it or change its settings. Undefined, after a loud line, where none is installed; with CI set
 * that is an error.
 */
export async function startPrivatePostgres(
  options?: Parameters<typeof startPostgresServer>[0],
): Promise<PrivatePostgres | undefined> {
  const server = await startPostgresServer(options);
  if (server === undefined) {
    reportMissing(
      "PostgreSQL",
      "tests that stop a server of their own are skipped. Install postgres and initdb.",
    );
  }
  return server;
}
