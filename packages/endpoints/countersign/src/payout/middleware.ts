import { GuardError, isGuardError, OptionError } from "@countersign/core";
import { option, splitOptions, type OptionTable } from "@countersign/core/internal";
import { composedGuard, isMountPath, pathOf, whileConnected } from "@countersign/express/internal";
import {
  guardErrors,
  receivedRequest,
  type ErrorMiddleware,
  type GuardRequest,
  type GuardResponse,
  type Middleware,
  type GuardErrorsOptions,
} from "@countersign/express";
import type { TransactionMode } from "@countersign/idempotency";
import {
  admission,
  EarlyAnswer,
  goOn,
  unpaidAnswers,
  type Admission,
} from "@countersign/idempotency-guard/internal";
import type { DrainableMiddleware } from "@countersign/idempotency-guard";
import { expressAdmission } from "@countersign/ip-allowlist";
import type { PayoutCode } from "./faults.ts";
import {
  factoryName,
  unauthorizedHeaders,
  type PayoutOptions as OptionsOf,
  type PayoutTransactionOptions as TransactionOptionsOf,
} from "./options.ts";
import { payoutReception, type PayoutAdapter } from "./reception.ts";

// What a payout endpoint needs beside it, for projects in which only direct dependencies can be imported (pnpm).
export { gracefulClose, type Middleware } from "@countersign/express";

/** What a payout has to satisfy, at any adapter. `Native` is the request of the framework. */
export type PayoutOptions<Native = GuardRequest> = OptionsOf<Native>;

/** A payout that is paid in one transaction with its key and its nonce, at any adapter. */
export type PayoutTransactionOptions<
  Tx,
  Mode extends TransactionMode,
  Native = GuardRequest,
> = TransactionOptionsOf<Native, Tx, Mode>;

interface Answers {
  /** `respond`: the chain answers its own rejections. `forward`: the app's own `guardErrors()` has to. Default `respond`. */
  readonly errors?: "respond" | "forward" | undefined;
  /** Called once for each rejection that the chain answers. Its own throw becomes a process warning. */
  readonly onReject?: GuardErrorsOptions["onReject"];
  /** Puts the id of its verdict into each answer of the chain, as `instance`. Default false. */
  readonly verdictId?: boolean | undefined;
}

export interface PayoutEndpointOptions extends PayoutOptions, Answers {}

export interface PayoutEndpointTransactionOptions<Tx, Mode extends TransactionMode>
  extends TransactionOptionsOf<GuardRequest, Tx, Mode>, Answers {}

export const answersTable = {
  errors: option.oneOf(["respond", "forward"], "respond"),
  onReject: option.optional(option.call<NonNullable<GuardErrorsOptions["onReject"]>>()),
  verdictId: option.boolean(false),
} satisfies OptionTable<Answers, unknown>;

/**
 * Receives payouts, for POST to that very path alone; each idempotency_key is paid once. With `stores` and `pay` the payout, its key and
 * its nonce commit in one transaction: `app.post(path, payoutEndpoint({ …, stores, pay }))`. With `idempotency.store` the handler comes
 * after it: `app.post(path, payoutEndpoint(options), handler)`, with `req.payout` checked. Throws a TypeError on a bad option.
 */
export function payoutEndpoint<Tx = never, Mode extends TransactionMode = TransactionMode>(
  options: PayoutEndpointOptions | PayoutEndpointTransactionOptions<Tx, Mode>,
): DrainableMiddleware {
  const [{ errors, ...answers }, steps] = splitOptions(factoryName, answersTable, options);
  if (errors === "forward") assertNoAnswers(answers);
  // The handler's own errors are the app's: only those of the steps come here.
  const refused = errors === "respond" ? guardErrors({ ...answers, unauthorizedHeaders }) : undefined;
  const adapterOfPath: PayoutAdapter<GuardRequest> = {
    ...adapter,
    assertPath: (req) => assertMountPath(req, endpoint),
  };
  const { givesTransaction, receive, drain } = payoutReception(steps, adapterOfPath);
  const unpaid: ErrorMiddleware = (error, req, res, next) => {
    if (!isGuardError(error) || refused === undefined) unpaidAnswers(res, error, true);
    if (refused === undefined) next(error);
    else refused(error, req, res, next);
  };
  const decide = (req: GuardRequest, res: GuardResponse): Promise<Admission> => {
    const request = receivedRequest(req);
    const connected = <T>(work: (left: AbortSignal) => Promise<T>): Promise<T> => whileConnected(res, work);
    if (!givesTransaction)
      return admission(req, (begin) => receive(request, req, { whileConnected: connected, begin }));
    const early = new EarlyAnswer(res, true);
    const around = (handle: () => unknown): unknown => early.around(handle);
    const onRequestSeen = (): void => early.watch();
    return admission(req, (begin) =>
      receive(request, req, { whileConnected: connected, begin, around, onRequestSeen }).finally(() =>
        early.over(),
      ),
    );
  };
  const endpoint = Object.assign(
    composedGuard(factoryName, decide, {
      refused: unpaid,
      found(admitted: Admission, req, res, next) {
        goOn(admitted, { req, res, next });
      },
    }),
    { drain },
  );
  return endpoint;
}

const adapter: Pick<PayoutAdapter<GuardRequest>, "admission" | "show"> = {
  admission: expressAdmission,
  show: (req, found) => void Object.assign(req, found),
};

/** Admits a request for exactly the endpoint's path. Refuses instead of `next()`: the handler that pays may be next in `app.use`. */
function assertMountPath(req: GuardRequest, endpoint: Middleware): void {
  if (isMountPath(req, endpoint) && !hasFinalSlash(req)) return;
  throw new GuardError<PayoutCode>({
    status: 404,
    code: "path-not-mounted",
    message:
      "the request is for another path than the one on which payoutEndpoint() is mounted; write " +
      "app.post(path, payoutEndpoint(options), handler) with the path as the service calls it; in a router, give the route " +
      "the endpoint itself, not a function that calls it",
  });
}

/** Whether the router took `/path/` for `/path`. Only where it left nothing of the path: a route names its final slash itself. */
function hasFinalSlash({ url = "/", originalUrl = "/" }: GuardRequest): boolean {
  const original = pathOf(originalUrl);
  return pathOf(url) === "/" && original !== "/" && original.endsWith("/");
}

/** Throws an OptionError on an option of the answers, which the app gives with `errors: "forward"`. */
function assertNoAnswers({
  onReject,
  verdictId,
}: Pick<PayoutEndpointOptions, "onReject" | "verdictId">): void {
  const useless = onReject !== undefined ? "onReject" : verdictId === true ? "verdictId" : undefined;
  if (useless === undefined) return;
  throw new OptionError(factoryName, {
    option: useless,
    what: 'has no effect with errors: "forward"; give it to the app\'s guardErrors() instead',
  });
}
