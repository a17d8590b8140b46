import { GuardError } from "@countersign/core";
import { guard, guardErrors, type Middleware } from "@countersign/express";
import express from "express";

/**
 * A guard of your own: it returns to let a request pass and throws to refuse
 * it.
 */
export function maintenanceWindow(isClosed: () => boolean): Middleware {
  return guard("maintenanceWindow", () => {
    if (!isClosed()) return;
    const headers = { "Retry-After": "600" };
    throw new GuardError({
      status: 503,
      code: "closed",
      message: "reports are closed",
      headers,
    });
  });
}

export const app = express();
app.use(
  "/reports",
  maintenanceWindow(() => new Date().getUTCHours() < 1),
);
app.get("/reports", (_req, res) => void res.json({ reports: [] }));
app.use(guardErrors({ onReject: (error) => console.warn(error) }));
