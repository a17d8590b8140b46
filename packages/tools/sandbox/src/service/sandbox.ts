import { createChangeStream, createPageToken, listen } from "@countersign/inspector/loopback";
import type { PartyStatus } from "@countersign/webhooks";
import type Database from "libsql";
import { DeliveryService } from "../delivery/delivery-service.ts";
import { createPayoutDesk } from "../page/payout-desk.ts";
import { closeDatabase, openDatabase } from "./database.ts";
import { identifierOf, newPaymentRequestOf, statusOf } from "./input.ts";
import { DocumentStore } from "../documents.ts";
import { resolveSandboxOptions, type ResolvedSandboxOptions, type SandboxOptions } from "./options.ts";
import type { RouteTargets } from "./routes.ts";
import { createServiceApp } from "./service-app.ts";
import {
  Simulation,
  type ChangeKind,
  type Confirmation,
  type NewPaymentRequest,
  type NotifiedPaymentRequest,
  type PaymentRequest,
  type StatusChange,
} from "./simulation.ts";

/** The lending service as it runs. What its methods refuse is a SandboxError, as over HTTP. */
export interface Sandbox {
  /** Where it listens, without a slash at the end. */
  readonly url: string;
  /** The page, with the token of this start as its fragment; undefined without the option `page`. */
  readonly pageUrl: string | undefined;
  readonly deliveries: DeliveryService;
  /** An unknown buyer is created as PENDING first. Refuses the status that the buyer has. */
  changeBuyerStatus(id: string, status: PartyStatus): StatusChange;
  changeSellerStatus(id: string, status: PartyStatus): StatusChange;
  buyerStatus(id: string): PartyStatus;
  sellerStatus(id: string): PartyStatus;
  createPaymentRequest(request: NewPaymentRequest): PaymentRequest;
  paymentRequest(id: string): PaymentRequest;
  /** Repays in full. Refuses a payment request that is CLOSED. */
  repay(id: string): NotifiedPaymentRequest;
  /** Refuses a payment request that is CLOSED. */
  remind(id: string): NotifiedPaymentRequest;
  /** Oldest first. */
  confirmations(): readonly Confirmation[];
  /** Resolves when requests under way are answered and the database is closed. Unsent webhooks stay in the file. */
  close(): Promise<void>;
}

/** Starts the service on a loopback address. Rejects with a TypeError, a SandboxDatabaseError, or the error of node:net. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const resolved = resolveSandboxOptions(options);
  const database = openDatabase(resolved.database);
  try {
    const parts = createParts(database, resolved);
    const pageToken = resolved.page === undefined ? undefined : createPageToken();
    const app = createServiceApp({ apiKey: resolved.apiKey, pageToken }, parts);
    const listening = await listen(app, resolved);
    parts.deliveries.start();
    const pageUrl = pageToken?.urlOn(listening.url);
    return sandboxOf(parts, { ...listening, pageUrl }, database);
  } catch (error) {
    closeDatabase(database);
    throw error;
  }
}

function createParts(database: Database.Database, resolved: ResolvedSandboxOptions): RouteTargets {
  const { apiKey, clock, speed, ca, delivery, onAttempt, allowHttp, page } = resolved;
  const store = new DocumentStore(database);
  const stream = createChangeStream<ChangeKind>({
    service: "the sandbox",
    counts: () => deliveries.control.counts(),
  });
  const deliveries: DeliveryService = new DeliveryService({
    store,
    clock,
    speed,
    ca,
    onAttempt,
    onChange: (ids) => stream.changed({ ids }),
    options: delivery,
    // An endpoint's receiver may know the key, and echo it.
    secrets: [apiKey],
  });
  const changed = (kind: ChangeKind): void => stream.changed({ kind });
  const { mask } = deliveries.control;
  const desk = { allowHttp, ca, clock, mask, changed: () => changed("payouts") };
  return {
    deliveries,
    allowHttp,
    stream,
    simulation: new Simulation({ store, deliveries, clock, changed }),
    payouts: page === undefined ? undefined : createPayoutDesk(page, desk),
  };
}

function sandboxOf(
  { deliveries, simulation, stream }: RouteTargets,
  listening: Awaited<ReturnType<typeof listen>> & Pick<Sandbox, "pageUrl">,
  database: Database.Database,
): Sandbox {
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    stream.close();
    await listening.close();
    await deliveries.stop();
    closeDatabase(database);
  };
  return {
    url: listening.url,
    pageUrl: listening.pageUrl,
    deliveries,
    changeBuyerStatus: (id, status) =>
      simulation.changeStatus("buyer", identifierOf(id), statusOf({ status })),
    changeSellerStatus: (id, status) =>
      simulation.changeStatus("seller", identifierOf(id), statusOf({ status })),
    buyerStatus: (id) => simulation.status("buyer", identifierOf(id)),
    sellerStatus: (id) => simulation.status("seller", identifierOf(id)),
    createPaymentRequest: (request) => simulation.createPaymentRequest(newPaymentRequestOf(request)),
    paymentRequest: (id) => simulation.paymentRequest(identifierOf(id)),
    repay: (id) => simulation.repay(identifierOf(id)),
    remind: (id) => simulation.remind(identifierOf(id)),
    confirmations: () => simulation.confirmations(),
    close: () => (closed ??= close()),
  };
}
