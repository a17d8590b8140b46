import { guardErrors } from "@countersign/express";
import { ipAllowlist } from "@countersign/ip-allowlist";
import express from "express";

export const app = express();

// Only behind a reverse proxy: the addresses of the proxies, never `true`.
app.set("trust proxy", ["10.0.0.5"]);

app.use(
  "/status",
  ipAllowlist({
    allow: ["192.0.2.10", "198.51.100.0/28", "2001:db8:7::/48"],
  }),
);
app.get("/status", (_req, res) => {
  res.json({ uptimeSeconds: process.uptime() });
});

app.use(guardErrors());
