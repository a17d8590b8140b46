// One app in a process of its own: `node server.mjs <kind>`, told its secrets by a message, answers with its port.
import { apps } from "./apps.mjs";

process.once("message", (secrets) => {
  const server = apps[process.argv[2]](secrets).listen(0, "127.0.0.1", () =>
    process.send({ port: server.address().port }),
  );
});
process.on("disconnect", () => process.exit(0));
