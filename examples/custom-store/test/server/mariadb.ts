// The MariaDB that the tests of a file run on.
import { afterAll, describe } from "@jest/globals";
import { createConnection } from "mysql2/promise";
import { reportMissing } from "@countersign/test-support/servers/server-binaries.mjs";
import { startMariadbServer } from "./mariadb-server.mjs";

const usual = "mysql://root@127.0.0.1:3306/test";

/**
 * MARIADB_URL, which must answer; else the server that listens where MariaDB usually does; else one of this file's own. Undefined
 * where there is none and no program to start one, or MARIADB_URL is empty: then that is said loudly, and is an error with CI=true.
 */
export const mariadbUrl: string | undefined = await findMariadb(process.env["MARIADB_URL"]);

export const describeOnMariadb: typeof describe.skip = mariadbUrl === undefined ? describe.skip : describe;

async function findMariadb(given: string | undefined): Promise<string | undefined> {
  if (given !== undefined && given !== "") {
    if (await answers(given)) return given;
    // Without the URL, which may hold a password.
    throw new Error("MARIADB_URL is set, but no MariaDB answers there");
  }
  if (given !== "" && (await answers(usual))) return usual;
  const server = given === "" ? undefined : await startMariadbServer();
  if (server === undefined) {
    const remedy = "Install mariadb-server, or set MARIADB_URL to the URL of a server for tests.";
    reportMissing("MariaDB", `every test of examples/custom-store is skipped. ${remedy}`);
    return undefined;
  }
  afterAll(() => server.close());
  return server.url;
}

async function answers(uri: string): Promise<boolean> {
  try {
    const connection = await createConnection({ uri, connectTimeout: 1_000 });
    await connection.end();
    return true;
  } catch {
    return false;
  }
}
