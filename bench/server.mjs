// One app in a process of its own: `node server.mjs <apps.mjs> <kind> <stores>`, told its secrets by a message, answers with its
// port, "cpu" with the CPU time that all its threads have used, "profile" when a CPU profile has begun, and "profiled" with that
// profile. <apps.mjs> may be another checkout's: what it
// imports is then found there.
import { Session } from "node:inspector/promises";
import { pathToFileURL } from "node:url";

const [file, kind, storesName] = process.argv.slice(2);

process.once("message", async (secrets) => {
  const { apps, stores } = await import(pathToFileURL(file).href);
  const openStores = stores?.[storesName];
  if (openStores === undefined)
    throw new Error(`${file} knows no stores "${storesName}": take this checkout's`);
  const app = await apps[kind](secrets, openStores);
  const server = app.listen(0, "127.0.0.1", () => {
    process.on("message", async (message) => process.send(await answers[message]()));
    process.send({ port: server.address().port });
  });
});
const session = new Session();
const answers = {
  cpu: () => ({ cpu: process.cpuUsage() }),
  async profile() {
    session.connect();
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: 200 });
    await session.post("Profiler.start");
    return {};
  },
  profiled: () => session.post("Profiler.stop"),
};
process.on("disconnect", () => process.exit(0));
