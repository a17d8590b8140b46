// A process with stores of its own on the tables of another: store-process.mjs <url> <prefix>. Answers calls by message.
import process from "node:process";
import { createMariadbStores } from "@countersign/example-custom-store";

const [uri, prefix] = process.argv.slice(2);
const stores = createMariadbStores({ uri, prefix, pruneIntervalMs: 0 });

process.on("message", async ({ id, store, method, parameters }) => {
  try {
    process.send({ id, value: await stores[store][method](...parameters) });
  } catch (error) {
    process.send({ id, error: String(error) });
  }
});
process.send("ready");
