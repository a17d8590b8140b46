import type { ChangeStream } from "@countersign/inspector/loopback";
import type { Response, Router } from "express";
import type { DeliveryDetail } from "../delivery/delivery-control.ts";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import type { Delivery } from "../delivery/types.ts";
import { tamperedWebhookParts } from "../delivery/webhook-request.ts";
import type { PayoutDesk, SentPayout } from "../page/payout-desk.ts";
import { sampleEventData } from "../sample-events.ts";
import * as input from "./input.ts";
import { partyStatuses } from "./parties.ts";
import { addPath } from "./paths.ts";
import { SandboxError } from "./sandbox-error.ts";

/** What else than a delivery can change. */
export type ChangeKind = "buyers" | "sellers" | "payment-requests" | "payouts" | "endpoints";

/** What there is to look at; the paths here have no secret in any answer. */
export interface LookingTargets {
  readonly deliveries: DeliveryService;
  readonly stream: ChangeStream<ChangeKind>;
  readonly payouts: PayoutDesk | undefined;
}

/** The sums and lists that a page begins with, and the stream of what changes. */
export function addLookingPaths(router: Router, { deliveries, stream, payouts }: LookingTargets): void {
  addPath(router, "/sandbox/overview", {
    get(_req, res) {
      res.json({
        endpoints: deliveries.endpoints(),
        counts: deliveries.control.counts(),
        statuses: partyStatuses,
        events: Object.fromEntries(sampleEventData),
        spoilt: tamperedWebhookParts,
        payouts: payouts?.about,
      });
    },
  });
  addPath(router, "/sandbox/stream", {
    get(_req, res) {
      stream.open(res);
    },
  });
}

const notFound = "no delivery of this number";

/** One delivery, and what is done to it. */
export function addControlPaths(router: Router, deliveries: DeliveryService): void {
  const { control } = deliveries;
  const answer = (res: Response, id: number, done: boolean): void => {
    const detail = detailOf(deliveries, id);
    if (!done)
      throw new SandboxError("delivery-state", `the delivery is ${stateOf(detail.delivery)}, and stays so`);
    res.json(detail);
  };
  addPath(router, "/sandbox/deliveries/:id", {
    get(req, res) {
      res.json(detailOf(deliveries, input.deliveryNumberOf(req.params["id"])));
    },
  });
  for (const action of ["pause", "continue", "drop"] as const) {
    addPath(router, `/sandbox/deliveries/:id/${action}`, {
      post(req, res) {
        const id = input.deliveryNumberOf(req.params["id"]);
        answer(res, id, control[action](id));
      },
    });
  }
  addPath(router, "/sandbox/deliveries/:id/spoil", {
    async post(req, res) {
      const id = input.deliveryNumberOf(req.params["id"]);
      answer(res, id, await control.spoil(id, input.spoilOf(req.body)));
    },
  });
}

function detailOf({ control }: DeliveryService, id: number): DeliveryDetail {
  const detail = control.detail(id);
  if (detail === undefined) throw new SandboxError("not-found", notFound);
  return detail;
}

function stateOf({ state, stopped }: Delivery): string {
  return stopped ?? state;
}

/** The payouts that were sent from the page, or through these paths. */
export function addPayoutPaths(router: Router, payouts: PayoutDesk): void {
  addPath(router, "/sandbox/payouts", {
    get(req, res) {
      const { limit, offset } = input.sliceOf(req.query);
      const all = payouts.list();
      const items = all.slice(offset, offset + limit).map(summaryOf);
      res.json({ payouts: items, total: all.length });
    },
    async post(req, res) {
      res.status(201).json(await payouts.send(input.payoutOrderOf(req.body)));
    },
  });
  addPath(router, "/sandbox/payouts/:number", {
    get(req, res) {
      const number = input.deliveryNumberOf(req.params["number"]);
      const payout = payouts.list().find((sent) => sent.number === number);
      if (payout === undefined) throw new SandboxError("not-found", "no payout of this number");
      res.json(payout);
    },
  });
}

function summaryOf(payout: SentPayout): object {
  const { steps, ...summary } = payout;
  return { ...summary, answers: steps.map(({ answer, error }) => answer?.status ?? error?.code) };
}
