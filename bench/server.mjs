// One app in a process of its own: `node server.mjs <apps.mjs> <kind> <stores>`, told its secrets by a message, answers with its
// port, and each later message with the CPU time that all its threads have used. <apps.mjs> may be another checkout's: what it
// imports is then found there.
import { pathToFileURL } from "node:url";

const [file, kind, storesName] = process.argv.slice(2);

process.once("message", async (secrets) => {
  const { apps, stores } = await import(pathToFileURL(file).href);
  const openStores = stores?.[storesName];
  if (openStores === undefined)
    throw new Error(`${file} knows no stores "${storesName}": take this checkout's`);
  const server = apps[kind](secrets, openStores).listen(0, "127.0.0.1", () => {
    process.on("message", () => process.send({ cpu: process.cpuUsage() }));
    process.send({ port: server.address().port });
  });
});
process.on("disconnect", () => process.exit(0));
