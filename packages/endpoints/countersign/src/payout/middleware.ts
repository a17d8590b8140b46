import { GuardError, isGuardError, OptionError } from "@countersign/core";
import { option, splitOptions, type OptionTable } from "@countersign/core/internal";
import { composedGuard, isMountPath, pathOf, whileConnected } from "@countersign/express/internal";
import {
  guardErrors,
  receivedRequest,
  type ErrorMiddleware,
  type GuardRequest,
  type Middleware,
  type NextFunction,
  type GuardErrorsOptions,
} from "@countersign/express";
import type { TransactionMode } from "@countersign/idempotency";
import {
  goOn,
  sendAnswer,
  EarlyAnswer,
  runOf,
  unpaidAnswers,
  type KeptAnswer,
  type OwnedRun,
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
import type { PayoutAdapter, PayoutReception } from "./reception.ts";
import { payoutSteps, type PayoutPayment } from "./transaction-reception.ts";

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
  const read = payoutSteps(steps, adapterOfPath);
  const unpaid: ErrorMiddleware = (error, req, res, next) => {
    if (!isGuardError(error) || refused === undefined) unpaidAnswers(res, error, true);
    if (refused === undefined) next(error);
    else refused(error, req, res, next);
  };
  const { receive, drain } =
    "payment" in read ? payments(read.payment, unpaid) : claims(read.reception, unpaid);

  const endpoint = Object.assign(receive, { drain });
  return endpoint;
}

interface Receiving extends Pick<DrainableMiddleware, "drain"> {
  readonly receive: Middleware;
}

/** Claims the key; the handler comes after. */
function claims(
  { receive, lookUp: ask, drain }: PayoutReception<GuardRequest>,
  refused: ErrorMiddleware,
): Receiving {
  // After the claim: a paid key is 409 even when its business has gone since.
  const lookUp =
    ask &&
    composedGuard(factoryName, ask, {
      refused,
      found(_payout, req, _res, next) {
        if (runOf(req)?.mayBegin() === true) next();
      },
    });
  return {
    drain,
    receive: composedGuard(
      factoryName,
      (req, res) => receive(receivedRequest(req), req, (work) => whileConnected(res, work)),
      {
        refused,
        found(run: OwnedRun, req, res, next) {
          const pay: NextFunction = (fault) => {
            if (fault !== undefined || lookUp === undefined) next(fault);
            else lookUp(req, res, next);
          };
          goOn({ run }, { req, res, next: pay });
        },
      },
    ),
  };
}

/** Pays; nothing comes after. */
function payments({ receive, drain }: PayoutPayment<GuardRequest>, refused: ErrorMiddleware): Receiving {
  return {
    drain,
    receive: composedGuard(
      factoryName,
      (req, res) => {
        const early = new EarlyAnswer(res, true);
        const request = receivedRequest(req);
        return receive(request, req, (work) => whileConnected(res, work), early).finally(() => early.over());
      },
      { refused, found: (answer: KeptAnswer, _req, res) => sendAnswer(res, answer) },
    ),
  };
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
      "app.post(path, payoutEndpoint(options), handler) with the path as the service calls it",
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
