import type { IncomingMessage } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { close, listen, send } from "../support/servers/http-client.ts";
import { fetchApp } from "./fetch-door.ts";
import { pathOf } from "./node-door.ts";
import type { Door } from "./scene.ts";

/** The same routes behind Hono's server on Node, with what the guide hands over but for `scheme`. */
export const honoDoor: Door = {
  name: "hono",
  async open(scene) {
    const app = fetchApp(scene);
    const listener = getRequestListener((request, env) => {
      const { rawHeaders, url: target, socket } = env.incoming as IncomingMessage;
      const info = { clientAddress: socket.remoteAddress, target, rawHeaders };
      return app(request, pathOf({ url: target }), info);
    });
    const { server, port } = await listen((req, res) => void listener(req, res));
    return { port, send: (wire) => send(port, wire), close: () => close(server) };
  },
};
