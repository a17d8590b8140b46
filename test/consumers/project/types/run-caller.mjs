// Pays once with what a compiled caller has loaded: node run-caller.mjs <file>
import { pathToFileURL } from "node:url";
import { payOnce } from "./send.mjs";

const [, , file] = process.argv;
const { load } = await import(pathToFileURL(file).href);
await payOnce(await load());
