// Another process that has the write lock until it is told to let go: lock-holder.mjs <database file>.
import process from "node:process";
import Database from "libsql";

const database = new Database(process.argv[2]);
database.exec("BEGIN IMMEDIATE");
process.once("message", () => {
  database.exec("COMMIT");
  process.send("free", () => process.disconnect());
});
process.send("locked");
