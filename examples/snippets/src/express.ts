import { GuardError } from "@countersign/core";
import { guard, guardErrors, type Middleware } from "@countersign/express";
import express from "express";

/** A guard of your own: it returns to let a request pass and throws to refuse it. */
export function maintenanceWindow(isClosed: () => boolean): Middleware {
  return guard("maintenanceWindow", () => {
    if (!isClosed()) return;
    const headers = { "Retry-After": "600" };
    throw new GuardError({ status: 503, code: "closed", message: "payouts are closed", headers });
  });
}

export const app = express();
app.use(
  "/api/v1/transaction",
  maintenanceWindow(() => new Date().getUTCHours() < 1),
);
app.post("/api/v1/transaction", (_req, res) => void res.json({ status: "acknowledged" }));
app.use(guardErrors({ onReject: (error) => console.warn(error) }));
