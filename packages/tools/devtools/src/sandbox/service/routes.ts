import { refuseOtherMethods, type createChangeStream } from "../../loopback/index.ts";
import { Router, type Request } from "express";
import type { DeliveryDetail } from "../delivery/delivery-control.ts";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import { tamperedWebhookTexts } from "../delivery/webhook-request.ts";
import type { PayoutDesk, SentPayout } from "../page/payout-desk.ts";
import { sampleEventData } from "../delivery/envelope.ts";
import * as input from "./input.ts";
import { addPath, type PathMethods } from "./paths.ts";
import { refuseTypeErrors, SandboxError } from "./sandbox-error.ts";
import type { ChangeKind, PartyKind, Simulation } from "./simulation.ts";

export interface RouteTargets {
  readonly simulation: Simulation;
  readonly deliveries: DeliveryService;
  readonly allowHttp: boolean | "loopback";
  readonly stream: ReturnType<typeof createChangeStream<ChangeKind>>;
  /** Undefined without a page. */
  readonly payouts: PayoutDesk | undefined;
}

type Paths = Readonly<Record<string, PathMethods>>;

/** The first path is the spec's; the others, and every answer, are ours. */
export function serviceRoutes(targets: RouteTargets): Router {
  const router = Router({ caseSensitive: true, strict: true });
  const paths = {
    ...endpointPaths(targets),
    ...partyPaths("buyer", targets.simulation),
    ...partyPaths("seller", targets.simulation),
    ...paymentRequestPaths(targets.simulation),
    ...deliveryPaths(targets.deliveries),
    "/sandbox/overview": { get: () => overviewOf(targets) },
    ...(targets.payouts === undefined ? {} : payoutPaths(targets.payouts)),
  };
  const stream = router.route("/sandbox/stream").get((_req, res) => targets.stream.open(res));
  stream.all(refuseOtherMethods("GET, HEAD"));
  for (const [path, methods] of Object.entries(paths)) addPath(router, path, methods);
  return router;
}

function idOf(req: Request): string {
  return String(req.params["id"]);
}

function endpointPaths({ deliveries, allowHttp, stream }: RouteTargets): Paths {
  return {
    "/api/v2/b2b-payments/webhook-endpoints": {
      status: 201,
      post(req) {
        const registration = { ...input.registrationOf(req.body), allowHttp };
        const endpoint = refuseTypeErrors(() => deliveries.addEndpoint(registration));
        stream.changed({ kind: "endpoints" });
        return endpoint;
      },
    },
  };
}

function partyPaths(kind: PartyKind, simulation: Simulation): Paths {
  const named = (id: string, shown: object): object => ({ [`${kind}_id`]: id, ...shown });
  return {
    [`/sandbox/${kind}s`]: { get: (req) => simulation.parties(kind, input.sliceOf(req.query)) },
    [`/sandbox/${kind}s/:id`]: {
      get: (req) => named(idOf(req), { status: simulation.statusOfParty(kind, idOf(req)) }),
    },
    [`/sandbox/${kind}s/:id/status`]: {
      post: (req) => named(idOf(req), simulation.changeStatus(kind, idOf(req), input.statusOf(req.body))),
    },
  };
}

function paymentRequestPaths(simulation: Simulation): Paths {
  return {
    "/sandbox/payment-requests": {
      status: 201,
      get: (req) => simulation.paymentRequests(input.sliceOf(req.query)),
      post: (req) => simulation.createPaymentRequest(input.newPaymentRequestOf(req.body)),
    },
    "/sandbox/payment-requests/:id": { get: (req) => simulation.paymentRequest(idOf(req)) },
    "/sandbox/payment-requests/:id/repay": { post: (req) => simulation.repay(idOf(req)) },
    "/sandbox/payment-requests/:id/remind": { post: (req) => simulation.remind(idOf(req)) },
    "/sandbox/confirmations": {
      status: 201,
      get: () => ({ confirmations: simulation.confirmations() }),
      post: (req) => simulation.confirm(input.confirmationOf(req.body)),
    },
  };
}

function deliveryPaths(deliveries: DeliveryService): Paths {
  const { control } = deliveries;
  const acting = (act: (id: number, body: unknown) => boolean | Promise<boolean>): PathMethods => ({
    async post(req) {
      const id = input.deliveryNumberOf(req.params["id"]);
      const isDone = await act(id, req.body);
      const detail = detailOf(deliveries, id);
      if (isDone) return detail;
      const { state, stopped } = detail.delivery;
      throw new SandboxError("delivery-state", `the delivery is ${stopped ?? state}, and stays so`);
    },
  });
  return {
    "/sandbox/events": {
      status: 202,
      post(req) {
        const events = input.eventsOf(req.body);
        refuseTypeErrors(() => deliveries.notify(events));
        return { event_ids: events.map(({ event_id }) => event_id) };
      },
    },
    "/sandbox/deliveries": {
      get(req) {
        const filter = input.deliveryFilterOf(req.query);
        return { deliveries: deliveries.list(filter), counts: control.counts(filter) };
      },
    },
    // Before the path of one delivery, which would take the word for a number.
    "/sandbox/deliveries/resend": {
      status: 202,
      post(req) {
        const sent = deliveries.resend(input.resendOf(req.body));
        if (sent.length > 0) return { deliveries: sent };
        throw new SandboxError("not-found", "no delivery, webhook or event of this id");
      },
    },
    "/sandbox/deliveries/:id": {
      get: (req) => detailOf(deliveries, input.deliveryNumberOf(req.params["id"])),
    },
    "/sandbox/deliveries/:id/pause": acting((id) => control.pause(id)),
    "/sandbox/deliveries/:id/continue": acting((id) => control.continue(id)),
    "/sandbox/deliveries/:id/drop": acting((id) => control.drop(id)),
    "/sandbox/deliveries/:id/spoil": acting((id, body) => control.spoil(id, input.spoilOf(body))),
  };
}

function detailOf({ control }: DeliveryService, id: number): DeliveryDetail {
  const detail = control.detail(id);
  if (detail === undefined) throw new SandboxError("not-found", "no delivery of this number");
  return detail;
}

function overviewOf({ deliveries, payouts }: RouteTargets): object {
  return {
    endpoints: deliveries.endpoints(),
    counts: deliveries.control.counts(),
    statuses: input.partyStatuses,
    events: Object.fromEntries(sampleEventData),
    spoilt: tamperedWebhookTexts,
    payouts: payouts?.about,
  };
}

function payoutPaths(payouts: PayoutDesk): Paths {
  return {
    "/sandbox/payouts": {
      status: 201,
      get(req) {
        const { limit, offset, search } = input.payoutSliceOf(req.query);
        const all = payouts.list(search);
        return { payouts: all.slice(offset, offset + limit).map(summaryOf), total: all.length };
      },
      post: (req) => payouts.send(input.payoutOrderOf(req.body)),
    },
    "/sandbox/payouts/:number": {
      get(req) {
        const number = input.deliveryNumberOf(req.params["number"]);
        const payout = payouts.list().find((sent) => sent.number === number);
        if (payout === undefined) throw new SandboxError("not-found", "no payout of this number");
        return payout;
      },
    },
  };
}

function summaryOf(payout: SentPayout): object {
  const { steps, ...summary } = payout;
  return { ...summary, answers: steps.map(({ answer, error }) => answer?.status ?? error?.code) };
}
