// A registry on loopback that holds our packages alone: for what is not ours it sends npm to the one that is configured.
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeModule, npm, writeJson } from "../consumers/support.mjs";

// The newest one for Node 20. It is no dependency of the workspace: 327 packages that only a release needs.
const verdaccio = "6.8.0";
// One of its parts asks for a tag that not every registry has.
const overrides = { "node-fetch": "2.7.0" };

/** Installs verdaccio in `work`, with the user's own npm, and returns the folder. */
export async function installRegistry(work) {
  const folder = makeModule(join(work, "registry"), "commonjs");
  writeJson(join(folder, "package.json"), { private: true, dependencies: { verdaccio }, overrides });
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts", "--prefer-offline"];
  await npm(["install", ...quiet], folder);
  return folder;
}

/**
 * Starts it, with a user who may publish. `own` are the names that are never asked for elsewhere. Returns its address, the token of the
 * user, and `stop()`.
 */
export async function startRegistry(folder, { upstream, own }) {
  writeJson(join(folder, "config.json"), configuration(folder));
  const program = fileURLToPath(new URL("registry-process.mjs", import.meta.url));
  const child = fork(program, [folder, upstream, ...own], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => said.push(chunk));
  const exit = once(child, "exit");
  const ended = exit.then(([code]) => {
    throw new Error(`the registry ended with ${code}\n${Buffer.concat(said).toString()}`);
  });
  ended.catch(() => {}); // also when nobody waits for it any more
  const [{ port }] = await Promise.race([once(child, "message"), ended]);
  const url = `http://127.0.0.1:${port}/`;
  const stop = async () => {
    child.kill("SIGTERM");
    await exit;
  };
  try {
    return { url, token: await createUser(url), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function configuration(folder) {
  return {
    storage: join(folder, "storage"),
    auth: { htpasswd: { file: join(folder, "htpasswd"), max_users: 1 } },
    packages: { "**": { access: "$all", publish: "$authenticated" } },
    max_body_size: "20mb",
    web: { enable: false },
    log: { type: "stdout", format: "pretty", level: "error" },
  };
}

async function createUser(url) {
  const name = "release";
  const response = await fetch(`${url}-/user/org.couchdb.user:${name}`, {
    method: "PUT",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name, password: randomBytes(24).toString("hex") }),
  });
  const { token } = await response.json();
  if (response.status !== 201 || typeof token !== "string") {
    throw new Error(`the registry made no user: ${response.status}`);
  }
  return token;
}
