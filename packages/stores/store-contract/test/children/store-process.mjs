// A process with a store of its own on the database of another: store-process.mjs <database file>. Answers calls by message.
import process from "node:process";
import { createStores } from "@countersign/store-sql";
import Database from "libsql";

const stores = createStores({ database: new Database(process.argv[2]), pruneIntervalMs: 0 });

process.on("message", ({ id, store, method, parameters }) => {
  try {
    process.send({ id, value: stores[store][method](...parameters) });
  } catch (error) {
    process.send({ id, error: String(error) });
  }
});
process.send("ready");
