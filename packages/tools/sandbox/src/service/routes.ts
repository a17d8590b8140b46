import type { ChangeStream } from "@countersign/inspector/loopback";
import { Router } from "express";
import type { DeliveryService } from "../delivery/delivery-service.ts";
import type { PayoutDesk } from "../page/payout-desk.ts";
import type { Confirmations } from "./confirmations.ts";
import * as input from "./input.ts";
import type { PartyKind } from "./parties.ts";
import { addControlPaths, addLookingPaths, addPayoutPaths, type ChangeKind } from "./looking-routes.ts";
import { addPath } from "./paths.ts";
import { refuseTypeErrors, SandboxError } from "./sandbox-error.ts";
import type { Simulation } from "./simulation.ts";

/** What the paths lead to. */
export interface RouteTargets {
  readonly simulation: Simulation;
  readonly deliveries: DeliveryService;
  readonly confirmations: Confirmations;
  /** Accept endpoints at http URLs: of this machine, or any. */
  readonly allowHttp: boolean | "loopback";
  /** What people look at has changed. */
  readonly stream: ChangeStream<ChangeKind>;
  /** Undefined where there is no page. */
  readonly payouts: PayoutDesk | undefined;
}

/** Every path of the service. The first is the spec's; the others, and every answer, are not shown there and are ours. */
export function serviceRoutes(targets: RouteTargets): Router {
  const router = Router({ caseSensitive: true, strict: true });
  addEndpointPaths(router, targets);
  addPartyPaths(router, "buyer", targets.simulation);
  addPartyPaths(router, "seller", targets.simulation);
  addPaymentRequestPaths(router, targets.simulation);
  addEventPaths(router, targets.deliveries);
  addResendPath(router, targets.deliveries);
  addConfirmationPaths(router, targets.confirmations);
  addLookingPaths(router, targets);
  addControlPaths(router, targets.deliveries);
  if (targets.payouts !== undefined) addPayoutPaths(router, targets.payouts);
  return router;
}

function addEndpointPaths(router: Router, { deliveries, allowHttp, stream }: RouteTargets): void {
  addPath(router, "/api/v2/b2b-payments/webhook-endpoints", {
    post(req, res) {
      const registration = { ...input.registrationOf(req.body), allowHttp };
      res.status(201).json(refuseTypeErrors(() => deliveries.addEndpoint(registration)));
      stream.changed({ kind: "endpoints" });
    },
  });
}

function addPartyPaths(router: Router, kind: PartyKind, simulation: Simulation): void {
  addPath(router, `/sandbox/${kind}s`, {
    get(req, res) {
      const { items, total } = simulation.parties(kind, input.sliceOf(req.query));
      res.json({ [`${kind}s`]: items.map(({ id, status }) => ({ [`${kind}_id`]: id, status })), total });
    },
  });
  addPath(router, `/sandbox/${kind}s/:id`, {
    get(req, res) {
      const id = input.identifierOf(req.params["id"]);
      res.json({ [`${kind}_id`]: id, status: simulation.status(kind, id) });
    },
  });
  addPath(router, `/sandbox/${kind}s/:id/status`, {
    post(req, res) {
      const id = input.identifierOf(req.params["id"]);
      const change = simulation.changeStatus(kind, id, input.statusOf(req.body));
      res.json({ [`${kind}_id`]: id, ...change });
    },
  });
}

function addPaymentRequestPaths(router: Router, simulation: Simulation): void {
  addPath(router, "/sandbox/payment-requests", {
    get(req, res) {
      const { items, total } = simulation.paymentRequests(input.sliceOf(req.query));
      res.json({ payment_requests: items, total });
    },
    post(req, res) {
      res.status(201).json(simulation.createPaymentRequest(input.newPaymentRequestOf(req.body)));
    },
  });
  addPath(router, "/sandbox/payment-requests/:id", {
    get(req, res) {
      res.json(simulation.paymentRequest(input.identifierOf(req.params["id"])));
    },
  });
  addPath(router, "/sandbox/payment-requests/:id/repay", {
    post(req, res) {
      res.json(simulation.repay(input.identifierOf(req.params["id"])));
    },
  });
  addPath(router, "/sandbox/payment-requests/:id/remind", {
    post(req, res) {
      res.json(simulation.remind(input.identifierOf(req.params["id"])));
    },
  });
}

function addEventPaths(router: Router, deliveries: DeliveryService): void {
  addPath(router, "/sandbox/events", {
    post(req, res) {
      const events = input.eventsOf(req.body);
      refuseTypeErrors(() => deliveries.notify(events));
      res.status(202).json({ event_ids: events.map(({ event_id }) => event_id) });
    },
  });
  addPath(router, "/sandbox/deliveries", {
    get(req, res) {
      res.json({ deliveries: deliveries.list(input.deliveryFilterOf(req.query)) });
    },
  });
}

function addResendPath(router: Router, deliveries: DeliveryService): void {
  addPath(router, "/sandbox/deliveries/resend", {
    post(req, res) {
      const sent = deliveries.resend(input.resendOf(req.body));
      if (sent.length === 0) throw new SandboxError("not-found", "no delivery, webhook or event of this id");
      res.status(202).json({ deliveries: sent });
    },
  });
}

function addConfirmationPaths(router: Router, confirmations: Confirmations): void {
  addPath(router, "/sandbox/confirmations", {
    get(_req, res) {
      res.json({ confirmations: confirmations.list() });
    },
    post(req, res) {
      res.status(201).json(confirmations.add(input.confirmationOf(req.body)));
    },
  });
}
