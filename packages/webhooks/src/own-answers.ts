import { quoteForLog, type GuardResponse, type NextFunction } from "@countersign/guard";

/**
 * Takes the place of `next` where no router can answer instead: whoever calls the endpoint by hand would take its `next()` for
 * "verified". A refusal is a bare 404, an error that nobody expected a bare 500 and a process warning.
 */
export function ownAnswers(res: GuardResponse): NextFunction {
  return (error) => {
    if (error !== undefined && error !== null) warn(error);
    if (res.headersSent) {
      if (!res.writableEnded) res.destroy();
      return;
    }
    res.statusCode = error === undefined || error === null ? 404 : 500;
    res.end();
  };
}

function warn(error: unknown): void {
  const text = error instanceof Error ? quoteForLog(`${error.name}: ${error.message}`, 200) : "no Error";
  process.emitWarning(`webhookEndpoint failed: ${text}`);
}
