import { digestResponse } from "@countersign/content-digest";
import express, { type Express } from "express";

export const app: Express = express();

// In front of compression().
app.use(digestResponse({ fields: ["Content-Digest", "Repr-Digest"] }));
app.get("/terms", (_req, res) => {
  res.json({ currency: "EUR" });
});
