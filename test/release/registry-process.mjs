// Runs the verdaccio that is installed in the folder of the first argument, on a free port, and tells it to the parent process.
import { createRequire } from "node:module";
import { join } from "node:path";

const folder = process.argv[2];
const { runServer } = createRequire(join(folder, "package.json"))("verdaccio");
const server = await runServer(join(folder, "config.json"));
server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
// The parent is gone, however it ended.
process.once("disconnect", () => process.exit());
