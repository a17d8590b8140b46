import type { IncomingMessage } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { close, listen, send } from "../support/servers/http-client.ts";
import { appErrorResponse, routes } from "./fetch-adapter.ts";
import { pathOf } from "./node-adapter.ts";
import type { Adapter } from "./scene.ts";

type Bindings = { readonly incoming: IncomingMessage };

/** The same routes in a Hono on Node, with what the guide hands over but for `scheme`. Errors are its `onError`'s. */
export const honoAdapter: Adapter = {
  name: "hono",
  async open(scene) {
    const app = routes(scene);
    const hono = new Hono<{ Bindings: Bindings }>();
    hono.all("*", ({ env, req }) => {
      const { rawHeaders, url: target, socket } = env.incoming;
      const info = { clientAddress: socket.remoteAddress, target, rawHeaders };
      return app(req.raw, pathOf({ url: target }), info);
    });
    hono.onError(() => appErrorResponse(scene));
    const listener = getRequestListener((request, env) => hono.fetch(request, env));
    const { server, port } = await listen((req, res) => void listener(req, res));
    return { port, send: (wire) => send(port, wire), close: () => close(server) };
  },
};
