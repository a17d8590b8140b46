import { guardErrors } from "@countersign/express";
import { jsonBody, numberTextAt, rawBody } from "@countersign/raw-body";
import express, { type Express } from "express";

export const app: Express = express();

app.post("/quotes", rawBody({ limit: "100kb" }), jsonBody(), (req, res) => {
  // req.rawBody holds the bytes as received; req.body was parsed from exactly
  // these.
  // "10.10", where req.body.amount.value is 10.1.
  const amount = numberTextAt(req, "/amount/value");
  res.json({ receivedBytes: req.rawBody?.length, amount });
});

app.use(guardErrors());
