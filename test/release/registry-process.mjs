// Runs the verdaccio that is installed in the folder of the first argument, on a free port, and tells it to the parent process. Of
// what is not ours it says where that is: handing it on takes longer than all else of a release.
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, upstream, ...own] = process.argv.slice(2);
const { runServer } = createRequire(join(folder, "package.json"))("verdaccio");
const server = await runServer(join(folder, "config.json"));
const [answer] = server.listeners("request");
server.removeAllListeners("request");
server.on("request", (request, response) => {
  if (isOurs(request.url)) answer(request, response);
  else response.writeHead(302, { Location: new URL(request.url.slice(1), upstream).href }).end();
});
// A busy machine pauses for longer than the default of five seconds, and a request on a connection that was closed meanwhile fails.
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => process.send({ port: server.address().port }));
// The parent is gone, however it ended.
process.once("disconnect", () => process.exit());

// A path begins with a package's name, or with /-/ for the registry itself.
function isOurs(url) {
  const [name] = /^(?:@[^/]+\/)?[^/]+/.exec(decodeURIComponent(url.slice(1).split("?")[0])) ?? ["-"];
  return name === "-" || name.startsWith("@countersign/") || own.includes(name);
}
