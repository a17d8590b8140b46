import {
  createPageToken,
  listen,
  maskerOf,
  pageFiles,
  pageUrlOf,
  refuseUnknownPath,
  requirePageToken,
  sendProblem,
} from "@countersign/loopback-page";
import express from "express";

/** A page on this machine alone, and what it asks: only with the token of this start, and without the secret. */
export async function showOrders(folder: URL, secret: string): Promise<string> {
  const token = createPageToken();
  const app = express();
  app.use(pageFiles(folder, ["app.js"]), requirePageToken(token, maskerOf({ texts: [secret] })));
  app.get("/orders", (_req, res) => void res.json({ orders: [], echoed: secret }));
  app.use(refuseUnknownPath, sendProblem({ service: "the orders page" }));
  const { url } = await listen(app, { host: "127.0.0.1", port: 0 });
  return pageUrlOf(url, token);
}
