// examples/cluster/nginx.conf in a real nginx, in front of two servers of this machine.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { endProcess, freePort, privateFolder, startServer } from "./private-process.mjs";

const clusterFile = fileURLToPath(new URL("../../../examples/cluster/nginx.conf", import.meta.url));

/** Undefined where there is none. */
export const nginxBinary = ["nginx", "/usr/sbin/nginx"].find((name) => spawnSync(name, ["-v"]).status === 0);

/** A configuration in a real nginx on this machine. */
export interface ClusterNginx {
  readonly port: number;
  log(): readonly string[];
  close(): Promise<void>;
}

/** Starts it before the servers of both ports. `change` makes another configuration of what is in the file. */
export async function startClusterNginx(
  [one, two]: readonly [number, number],
  change: (conf: string) => string = (conf) => conf,
): Promise<ClusterNginx> {
  const sandboxPort = await freePort();
  return startNginx((port) =>
    change(readFileSync(clusterFile, "utf8"))
      .replace("platform-1:3000", `127.0.0.1:${one}`)
      .replace("platform-2:3000", `127.0.0.1:${two}`)
      .replace("listen 8080", `listen 127.0.0.1:${port}`)
      .replace("listen 4001", `listen 127.0.0.1:${sandboxPort}`),
  );
}

/** Starts nginx on a free port with what `conf` gives for it, whose files are then in a folder of its own. */
export async function startNginx(conf: (port: number) => string): Promise<ClusterNginx> {
  const folder = privateFolder("nginx");
  const port = await freePort();
  const file = path.join(folder.path, "nginx.conf");
  const log = path.join(folder.path, "access.log");
  const here = conf(port)
    .replace(/^pid .*;$/m, `pid ${path.join(folder.path, "nginx.pid")};`)
    .replace(/^ *access_log [^\s;]+/m, `  access_log ${log}`)
    .replace(/^error_log \S+/m, `error_log ${path.join(folder.path, "error.log")}`)
    .replace("http {", `http {\n${temporaryPaths(folder.path)}`);
  writeFileSync(file, here);
  const child = await startServer({
    command: String(nginxBinary),
    args: ["-p", folder.path, "-c", file, "-g", "daemon off; master_process off;"],
    folder: folder.path,
    isReady: () => isListening(port),
  });
  return {
    port,
    log: () => readFileSync(log, "utf8").split("\n").slice(0, -1),
    async close() {
      await endProcess(child, "SIGTERM");
      folder.remove();
    },
  };
}

function temporaryPaths(folder: string): string {
  return ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${path.join(folder, name)};`)
    .join("\n");
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
