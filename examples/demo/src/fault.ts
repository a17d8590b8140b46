import Database from "libsql";

const removal = "DROP TRIGGER IF EXISTS demo_fault";

/**
 * Makes the platform's database refuse one seller, as a full disk would, until the function that it returns is called. The
 * platform knows nothing of it. `sellerId` is made of letters, digits and hyphens.
 */
export function refuseSeller(databaseFile: string, sellerId: string): () => void {
  if (!/^[\w-]+$/.test(sellerId)) throw new TypeError("refuseSeller: the id cannot be a part of a statement");
  const database = new Database(databaseFile);
  database.exec("PRAGMA busy_timeout = 5000");
  // One that a killed demo has left behind.
  database.exec(removal);
  database.exec(
    `CREATE TRIGGER demo_fault BEFORE INSERT ON sellers WHEN NEW.id = '${sellerId}'
     BEGIN SELECT RAISE(ABORT, 'the demo refuses this row'); END`,
  );
  return () => {
    database.exec(removal);
    database.close();
  };
}
