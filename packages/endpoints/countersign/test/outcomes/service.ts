import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { listen } from "@countersign/core/internal";
import { createOutcomes, type Outcomes, type OutcomesOptions } from "countersign/outcomes";
import { afterTest } from "@countersign/test-support/runs/after-test.ts";
import { eventually } from "@countersign/test-support/runs/eventually.ts";
import { openStores, quick, type Db, type Stores } from "@countersign/test-support/runs/work-stores.ts";

export { changed, openStores, type Db, type Stores } from "@countersign/test-support/runs/work-stores.ts";

export type Options = OutcomesOptions<Db, "sync">;

export interface Received {
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Answer = (res: ServerResponse, request: Received) => void;

export const status =
  (code: number, body = "", headers: Readonly<Record<string, string>> = {}): Answer =>
  (res) =>
    void res.writeHead(code, headers).end(body);

/** A service that answers the first request by the first answer, and so on; the last one stays. */
export async function startService(
  ...answers: readonly Answer[]
): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((req, res) => {
    let body = "";
    req.setEncoding("utf8");
    req.on("data", (chunk: string) => (body += chunk));
    req.on("end", () => {
      const request = { method: req.method, target: req.url, headers: req.headers, body };
      received.push(request);
      answers[Math.min(received.length, answers.length) - 1]?.(res, request);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  afterTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/outcomes`, received };
}

/** Ends with the test. */
export function outcomesOn(
  stores: Stores,
  options: Partial<Options> & Pick<Options, "url">,
): Outcomes<Db, "sync"> {
  const outcomes = createOutcomes({ stores, ...quick, ...options });
  afterTest(() => outcomes.drain({ timeoutMs: 1_000 }));
  return outcomes;
}

export const settled = {
  idempotencyKey: "payout-1.funding-1.business-1",
  business_id: "biz_1",
  status: "SETTLED",
  settledAt: new Date("2026-11-24T10:00:00.123Z"),
};

/** Settles in a transaction of its own. */
export async function report(
  { transactions }: Stores,
  outcomes: Outcomes<Db, "sync">,
  outcome: Parameters<typeof outcomes.report>[1] = settled,
): Promise<void> {
  await transactions.run((tx) => outcomes.report(tx, outcome));
}

/** Reports {@link settled} to a service that answers so; resolves when the first attempt has ended. */
export async function sentTo(answers: readonly Answer[], options: Partial<Options> = {}) {
  const opened = openStores();
  const told = heard();
  const service = await startService(...answers);
  const outcomes = outcomesOn(opened.stores, { url: service.url, ...options });
  outcomes.start();
  await report(opened.stores, outcomes);
  await eventually(() => told.attempts.length > 0);
  const record = await opened.stores.work.read("outcomes", settled.idempotencyKey);
  return { ...opened, ...told, service, record };
}

/** Notices of createOutcomes and the words of attempts, until the test ends. */
export function heard(): { codes: string[]; messages: string[]; attempts: string[] } {
  const [codes, messages, attempts]: [string[], string[], string[]] = [[], [], []];
  const end = listen("test", {
    notice({ guard, code, message }) {
      if (guard !== "createOutcomes") return;
      codes.push(code);
      messages.push(message);
    },
    task: ({ queue, outcome }) => void attempts.push(`${queue} ${outcome}`),
  });
  afterTest(end);
  return { codes, messages, attempts };
}
