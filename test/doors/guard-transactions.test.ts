// idempotencyGuard() around a handler that gets the transaction of its key.
import { guardErrors } from "@countersign/express";
import { idempotencyHook } from "@countersign/fastify";
import { idempotentRoute } from "@countersign/fetch";
import { idempotencyGuard } from "@countersign/idempotency-guard";
import type { TransactionAnswerStore } from "@countersign/idempotency";
import { describe, expect, test } from "@jest/globals";
import express5, { type ErrorRequestHandler } from "express";
import { fastify } from "fastify";
import type { AddressInfo } from "node:net";
import { collectNotices } from "../support/runs/faulty-store.ts";
import { close, listen, send } from "../support/servers/http-client.ts";
import { fail, guardRows, type GuardOptions, type GuardRow } from "./guard-rows.ts";
import { after, engines, type Tables, type Tx } from "./payments/engines.ts";

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

interface GuardDoor {
  readonly name: string;
  /** An app whose guard reads the key of `?key=`, and that answers `passed` behind it and `appStatus` to errors. */
  open(
    options: GuardOptions,
    appStatus: number,
  ): Promise<{
    readonly send: (method: string, key: string) => Promise<Seen>;
    readonly close: () => Promise<unknown>;
  }>;
}

const keyOf = ({ url = "" }: { readonly url?: string | undefined }): string | undefined =>
  new URL(url, "http://platform.example").searchParams.get("key") || undefined;
const fingerprint = ({ url = "" }: { readonly url?: string | undefined }): string =>
  new URL(url, "http://platform.example").searchParams.get("payload") ?? "f";
const over = (port: number) => (method: string, key: string) =>
  send(port, { method, path: `/pay?key=${key}`, headers: [], body: Buffer.alloc(0) });

const guardDoors: readonly GuardDoor[] = [
  {
    name: "express 5",
    async open(options, appStatus) {
      const app = express5();
      const failed: ErrorRequestHandler = (_error, _req, res, _next) =>
        void res.status(appStatus).end("failed");
      const guard = idempotencyGuard({ ...options, key: keyOf, fingerprint });
      app.all("/pay", guard, (_req, res) => void res.end("passed"));
      app.use(guardErrors(), failed);
      const { server, port } = await listen(app);
      return { send: over(port), close: () => close(server) };
    },
  },
  {
    name: "fastify",
    async open(options, appStatus) {
      const app = fastify({ forceCloseConnections: true });
      app.setErrorHandler((_error, _request, reply) => void reply.code(appStatus).send("failed"));
      app.all(
        "/pay",
        { preHandler: idempotencyHook({ ...options, key: keyOf, fingerprint }) },
        () => "passed",
      );
      await app.listen({ port: 0, host: "127.0.0.1" });
      return { send: over((app.server.address() as AddressInfo).port), close: () => app.close() };
    },
  },
  {
    name: "fetch",
    async open({ methods: _methods, required: _required, ...options }) {
      const route = idempotentRoute({ ...options, key: keyOf, fingerprint });
      return {
        async send(method, key) {
          const url = `http://platform.example/pay?key=${key}`;
          const answered = await route(new Request(url, { method })).catch(
            () => new Response("failed", { status: 500 }),
          );
          const headers = Object.fromEntries(answered.headers);
          return { status: answered.status, headers, body: await answered.text() };
        },
        close: async () => undefined,
      };
    },
  },
];

type Answers = TransactionAnswerStore<Tx>;

/** Remembers the tokens that were kept. */
function observed(answers: Answers, tables: Tables, { afterAnswer }: GuardRow) {
  const tokens: string[] = [];
  const keepIn: Answers["keepIn"] = (tx, token, bytes) => {
    tokens.push(token);
    const isFirst = tokens.length === 1;
    return after(answers.keepIn(tx, token, bytes), () => isFirst && afterAnswer?.(tables, tx)) as void;
  };
  const { database, engine } = answers;
  const find: Answers["find"] = (token) => answers.find(token);
  return { tokens, answers: { database, engine, find, keepIn, keep: fail, prune: () => 0, close() {} } };
}

async function play(door: GuardDoor, tables: Tables, row: GuardRow) {
  const { options, first, sends, replay, appStatus = 500 } = row;
  const stores = tables.process();
  const its = replay && observed(await tables.answersOf(stores), tables, row);
  const { codes, stop } = collectNotices();
  let calls = 0;
  const handle = (_request: object, { tx }: { readonly tx: Tx }): unknown => {
    calls += 1;
    const isFirst = calls === 1;
    return after(tables.sql(tx, "INSERT INTO payments VALUES ('paid')"), () => isFirst && first?.());
  };
  const opened = await door.open(
    { ...options, stores, handle, ...(its && { replay: { ...replay, answers: its.answers } }) },
    appStatus,
  );
  const answers: string[] = [];
  for (const [method = "", key = ""] of sends.map((sent) => sent.split(" "))) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const { status, headers, body } = await opened.send(method, key);
    const again =
      headers["idempotency-replayed"] === "true" ? `again ${String(headers["content-type"] ?? "")} ` : "";
    answers.push(`${status} ${again}${body}`);
  }
  await opened.close();
  stop();
  const tokens = new Set(its?.tokens);
  const found = await Promise.all([...tokens].map(async (token) => its?.answers.find(token)));
  return {
    answers,
    paid: await tables.paid(),
    notices: codes(),
    kept: [its?.tokens.length ?? 0, found.filter(Boolean).length],
  };
}

for (const door of guardDoors) {
  describe.each(engines)(`idempotencyGuard() at ${door.name}, on $name`, ({ name, open }) => {
    const its = guardRows.filter(
      ({ on = [door.name], engines: where = [name] }) => on.includes(door.name) && where.includes(name),
    );
    test.each(its)("$title", async (row) => {
      const { answers, paid, notices, kept } = await play(door, await open(), row);
      expect(answers).toEqual(row.answers.map((form) => expect.stringMatching(form)));
      expect(paid).toHaveLength(row.paid);
      expect(notices).toEqual(row.notices ?? []);
      expect(kept).toEqual(row.kept ?? [0, 0]);
    });
  });
}
