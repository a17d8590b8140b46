import { connect } from "node:net";
import process from "node:process";

const usual = {
  DATABASE_URL: "postgres://postgres@127.0.0.1:5432/test",
  REDIS_URL: "redis://127.0.0.1:6379",
  MYSQL_URL: "mysql://root@127.0.0.1:3306/test",
};
const ports = { DATABASE_URL: 5432, REDIS_URL: 6379, MYSQL_URL: 3306 };

/**
 * The URL of the server of a variable: the given one, which must answer, or the usual one when it does. Undefined when there is
 * none, or when the variable is empty.
 */
export async function serverUrl(variable) {
  const given = process.env[variable];
  if (given === "") return undefined;
  // Node shows the whole text of a URL that it cannot read, with its password.
  if (given !== undefined && !URL.canParse(given)) throw new Error(`${variable} is set, but is no URL`);
  const { hostname, port } = new URL(given ?? usual[variable]);
  if (await isListening(hostname, Number(port || ports[variable]))) return given ?? usual[variable];
  if (given === undefined) return undefined;
  // The URL may hold a password.
  throw new Error(`${variable} is set, but nothing listens there`);
}

function isListening(host, port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: 2_000 });
    const settle = (listening) => {
      socket.destroy();
      resolve(listening);
    };
    socket.once("connect", () => settle(true));
    socket.once("error", () => settle(false));
    socket.once("timeout", () => settle(false));
  });
}
