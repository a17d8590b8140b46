import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

let server: Server;
let proxy: TcpProxy;
let received: string;
const clients: Socket[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  received = "";
  sockets.length = 0;
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      received += bytes.toString();
      socket.write(`<${bytes.toString()}>`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy = await startTcpProxy((server.address() as AddressInfo).port);
});

afterEach(async () => {
  for (const socket of clients.splice(0)) socket.destroy();
  await proxy.close();
  server.close();
});

async function client(): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port: proxy.port });
  socket.on("error", () => {});
  clients.push(socket);
  await once(socket, "connect");
  return socket;
}

// Not once(): it rejects when an error comes before, and a reset is one.
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on("close", () => resolve());
  });
}

async function serverHas(text: string): Promise<void> {
  while (!received.includes(text)) await sleep(5);
}

async function answer(socket: Socket): Promise<string> {
  return String((await once(socket, "data"))[0]);
}

async function say(socket: Socket, text: string): Promise<string> {
  socket.write(text);
  return answer(socket);
}

describe("startTcpProxy", () => {
  test("hands on what both sides send, and the end of a connection", async () => {
    const socket = await client();
    expect(await say(socket, "a")).toBe("<a>");
    socket.end();
    await once(socket, "close");
    expect(await say(await client(), "b")).toBe("<b>");
  });

  test("delays what the client sends, in order also when the delay has ended", async () => {
    const socket = await client();
    proxy.delay(150);
    const sentAt = performance.now();
    socket.write("1");
    await sleep(20);
    expect(received).toBe("");
    proxy.restore();
    socket.write("2");
    expect(await answer(socket)).toMatch(/^<1/);
    expect(performance.now() - sentAt).toBeGreaterThan(140);
    await serverHas("12");
  });

  test("drops replies while the server goes on, and then cuts the connections that lost some", async () => {
    const [socket, untouched] = [await client(), await client()];
    await say(untouched, "u");
    proxy.dropReplies(true);
    let replies = 0;
    socket.on("data", () => (replies += 1));
    const gone = closed(socket);
    socket.write("lost");
    await serverHas("ulost");
    await sleep(30);
    proxy.dropReplies(false);
    await gone;
    expect(replies).toBe(0);
    expect(await say(untouched, "v")).toBe("<v>");
    expect(await say(await client(), "w")).toBe("<w>");
  });

  test("cuts with a reset what is open, and accepts what comes", async () => {
    const socket = await client();
    await say(socket, "a");
    const error = once(socket, "error");
    proxy.cut();
    expect((await error)[0]).toMatchObject({ code: "ECONNRESET" });
    expect(await say(await client(), "b")).toBe("<b>");
  });

  test("refuses new connections until it is restored, and leaves the open ones", async () => {
    const open = await client();
    await say(open, "a");
    proxy.refuse(true);
    const refused = connect({ host: "127.0.0.1", port: proxy.port }).on("error", () => {});
    clients.push(refused);
    await closed(refused);
    expect(await say(open, "b")).toBe("<b>");
    proxy.restore();
    expect(await say(await client(), "c")).toBe("<c>");
  });

  test("ends the client's connection when the server ends its own", async () => {
    const socket = await client();
    await say(socket, "a");
    const gone = closed(socket);
    for (const accepted of sockets) accepted.end("bye");
    expect(await answer(socket)).toBe("bye");
    await gone;
  });
});
