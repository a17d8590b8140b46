import { fromPg } from "@countersign/store-sql/pg";
import {
  answer,
  idempotencyGuard,
  idempotencyKeyHeader,
} from "@countersign/idempotency-guard";
import { createAnswers, createStores } from "@countersign/store-sql";
import type { Middleware } from "@countersign/express";
import type { Pool } from "pg";

/** Mount it after `rawBody()` and `jsonBody()`; nothing follows it. */
export function chargeOnce(pool: Pool): Middleware {
  const database = fromPg(pool); // one for both, so that they commit together
  return idempotencyGuard({
    ...idempotencyKeyHeader({
      bareKeys: true,
      caller: (req) => req.user?.id,
    }),
    stores: createStores({ database }),
    scope: "charges",
    replay: { answers: createAnswers({ database }) },
    async handle(req, { tx }) {
      const { amount } = Object(req.body);
      const insert = "INSERT INTO charges (amount) VALUES ($1) RETURNING id";
      const { rows } = await tx.query<{ id: string }>(insert, [amount]);
      return answer(201, { id: rows[0]?.id, amount });
    },
  });
}
