// A Redis of one's own, in a temporary folder on a free port of loopback. Plain JavaScript: the set-up of jest runs it as it is.
import { ask, endProcess, freePort, privateFolder, startServer } from "./private-process.mjs";
import { redisServer } from "./server-binaries.mjs";

/** Undefined when the binary is missing. `persist`: every write is on the disk before it is answered. */
export async function startRedisServer({ args = [], persist = false } = {}) {
  const binary = redisServer();
  if (binary === undefined) return undefined;
  const folder = privateFolder("redis");
  const port = await freePort();
  const persistence = persist ? ["--appendonly", "yes", "--appendfsync", "always"] : ["--appendonly", "no"];
  const command = {
    command: binary,
    args: ["--bind", "127.0.0.1", "--port", String(port), "--save", "", ...persistence, ...args],
    folder: folder.path,
    isReady: () => redisAnswers({ host: "127.0.0.1", port }),
  };
  let child;
  try {
    child = await startServer(command);
  } catch (error) {
    folder.remove();
    throw error;
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid;
    },
    stop: () => endProcess(child, "SIGTERM"),
    kill: () => endProcess(child, "SIGKILL"),
    async start() {
      child = await startServer(command);
    },
    async close() {
      await endProcess(child, "SIGTERM");
      folder.remove();
    },
  };
}

/** Whether a Redis serves there without a password. */
export async function redisAnswers(address) {
  return (await redisCommand({ ...address, command: "PING" })) === "+PONG";
}

/** One inline command of letters and digits; the answer up to the first line's end, or a bulk string's text. */
export async function redisCommand({ command, ...address }) {
  const isEnough = (answer) => {
    const end = answer.indexOf("\r\n");
    if (end < 0) return false;
    return answer[0] !== 0x24 || answer.length >= end + 4 + Number(answer.subarray(1, end));
  };
  const answer = await ask({ ...address, request: `${command}\r\n`, isEnough });
  return answer?.toString().trim();
}
