import {
  idempotencyGuard,
  idempotencyKeyHeader,
} from "@countersign/idempotency-guard";
import { jsonBody, rawBody } from "@countersign/raw-body";
import { type SqliteDatabase, createStores } from "@countersign/store-sql";
import type { Express } from "express";

/** `charge` calls the bank, which may have charged before it fails. */
export function mountCharges(
  app: Express,
  database: SqliteDatabase,
  charge: (key: string, body: unknown) => Promise<unknown>,
): void {
  const once = idempotencyGuard({
    ...idempotencyKeyHeader({
      bareKeys: true,
      caller: (req) => req.user?.id,
    }),
    store: createStores({ database }).idempotency,
    scope: "charges",
  });
  app.post("/charges", rawBody(), once, jsonBody(), (req, res, next) => {
    const attempt = req.idempotency;
    if (attempt === undefined) throw new Error("mount the guard first");
    // A failure from here on holds the key: an operator asks the bank.
    attempt.hold("the bank was asked");
    charge(attempt.key, req.body).then(
      (charged) => res.status(201).json(charged),
      next,
    );
  });
}
