import { METHODS, type RequestListener } from "node:http";
import { isGuardError } from "@countersign/core";
import { guardErrors, type Middleware } from "@countersign/express";
import { payoutEndpoint } from "countersign/payout";
import { describe, expect, test } from "@jest/globals";
import type { Express, NextFunction, Request, RequestHandler, Response } from "express";
import type { ExpressFactory } from "@countersign/test-support/runs/express-versions.ts";
import { close, listen, send, type WireAnswer } from "@countersign/test-support/servers/http-client.ts";
import { payoutBody } from "./payout-body.ts";
import { codeOf, expressVersions, optionsWith, path, signer } from "./platform.ts";
import { signByHand } from "./sign-by-hand.ts";

const body = Buffer.from(JSON.stringify(payoutBody));
const otherMethods = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "TRACE"].filter((method) =>
  METHODS.includes(method),
);

interface Sent {
  readonly method?: string;
  readonly target?: string;
  readonly isSigned?: boolean;
}

/** Sends a payout that is signed for this very method and target. */
async function instruct(
  app: RequestListener,
  { method = "POST", target = path, isSigned = true }: Sent = {},
): Promise<WireAnswer> {
  const signed = signByHand(signer, { method, path: target, body });
  const headers = isSigned ? Object.entries(signed).flat() : ["Content-Type", "application/json"];
  const { server, port } = await listen(app);
  try {
    return await send(port, { method, path: target, headers, body });
  } finally {
    await close(server);
  }
}

interface Site {
  readonly app: Express;
  /** The targets that the handler behind the endpoint was run for. */
  readonly paid: (string | undefined)[];
  readonly codes: unknown[];
}

type Mount = (app: Express, endpoint: Middleware, pay: RequestHandler, framework: ExpressFactory) => void;

function siteOf(framework: ExpressFactory, mount: Mount): Site {
  const app = framework();
  app.set("env", "test");
  const paid: (string | undefined)[] = [];
  const codes: unknown[] = [];
  const endpoint = payoutEndpoint(optionsWith({ onReject: (error) => void codes.push(codeOf(error)) }));
  const pay = (req: Request, res: Response): void => {
    paid.push(req.originalUrl);
    res.sendStatus(200);
  };
  mount(app, endpoint, pay, framework);
  app.use((_req: Request, res: Response) => void res.status(404).send("the app's own 404"));
  return { app, paid, codes };
}

const passOn = (_req: Request, _res: Response, next: NextFunction): void => next();

const use: Mount = (app, endpoint, pay) => void app.use(path, endpoint, pay);
const all: Mount = (app, endpoint, pay) => void app.all(path, endpoint, pay);
const post: Mount = (app, endpoint, pay) => void app.post(path, endpoint, pay);

describe.each(expressVersions)("payoutEndpoint on %s", (_version, framework) => {
  describe.each<[string, Mount]>([
    ["app.use", use],
    ["app.all", all],
    [
      "app.use behind a route that matched everything",
      (app, endpoint, pay) => {
        app.all(/.*/, passOn);
        app.use(path, endpoint, pay);
      },
    ],
    [
      "router.all in a router at a prefix",
      (app, endpoint, pay, { Router }) => {
        const router = Router();
        router.all("/transaction", endpoint, pay);
        app.use("/api/v1", router);
      },
    ],
  ])("mounted by %s", (_how, mount) => {
    test("pays by POST", async () => {
      const { app, paid } = siteOf(framework, mount);
      expect(await instruct(app)).toMatchObject({ status: 200 });
      expect(paid).toEqual([path]);
    });

    test.each(otherMethods)("refuses a signed %s with 405", async (method) => {
      const { app, paid, codes } = siteOf(framework, mount);
      const answer = await instruct(app, { method });
      expect(answer).toMatchObject({ status: 405, headers: { allow: "POST" } });
      expect({ paid, codes }).toEqual({ paid: [], codes: ["method-not-allowed"] });
    });

    test.each(otherMethods)("answers an unsigned %s as any unsigned request", async (method) => {
      const { app, paid } = siteOf(framework, mount);
      expect(await instruct(app, { method, isSigned: false })).toMatchObject({ status: 401 });
      expect(paid).toEqual([]);
    });
  });

  test.each(["/", "/sub", "/sub/path", "/1/cancel", "/sub/"])(
    "mounted by app.use, refuses a payout signed for %s below its path",
    async (below) => {
      const { app, paid, codes } = siteOf(framework, use);
      for (const method of ["POST", "DELETE"]) {
        expect(await instruct(app, { method, target: path + below })).toMatchObject({ status: 404 });
      }
      expect({ paid, codes }).toEqual({ paid: [], codes: ["path-not-mounted", "path-not-mounted"] });
    },
  );

  test.each(otherMethods)("mounted by app.post, is not asked for a signed %s", async (method) => {
    const { app, paid, codes } = siteOf(framework, post);
    const { status } = await instruct(app, { method });
    expect(status).toBe(404);
    expect({ paid, codes }).toEqual({ paid: [], codes: [] });
  });

  test.each([
    ["a final slash", `${path}/`],
    ["another letter case", path.toUpperCase()],
  ])("mounted by app.post, refuses a payout signed for its path with %s", async (_name, target) => {
    const { app, paid, codes } = siteOf(framework, post);
    expect(await instruct(app, { target })).toMatchObject({ status: 404 });
    expect({ paid, codes }).toEqual({ paid: [], codes: ["path-not-mounted"] });
  });

  test("mounted by app.use, takes another letter case as the app's router does", async () => {
    const target = path.toUpperCase();
    const lenient = siteOf(framework, use);
    expect(await instruct(lenient.app, { target })).toMatchObject({ status: 200 });
    const strict = siteOf(framework, (app, endpoint, pay) => {
      app.enable("case sensitive routing");
      app.use(path, endpoint, pay);
    });
    expect(await instruct(strict.app, { target })).toMatchObject({ status: 404, body: "the app's own 404" });
    expect(strict.paid).toEqual([]);
  });

  test.each<[string, Mount]>([
    [
      "router.post",
      (app, endpoint, pay, { Router }) =>
        void app.use("/api", Router().post("/v1/transaction", endpoint, pay)),
    ],
    [
      "router.post of its root",
      (app, endpoint, pay, { Router }) => void app.use(path, Router().post("/", endpoint, pay)),
    ],
    ["app.route", (app, endpoint, pay) => void app.route(path).post(endpoint, pay)],
    [
      "a path with a parameter",
      (app, endpoint, pay) => void app.post("/api/:version/transaction", endpoint, pay),
    ],
    [
      "a regular expression",
      (app, endpoint, pay) => void app.post(/^\/api\/v\d\/transaction$/, endpoint, pay),
    ],
    ["a list of paths", (app, endpoint, pay) => void app.post(["/other", path], endpoint, pay)],
    [
      "a wrapper",
      (app, endpoint, pay) => void app.post(path, (req, res, next) => endpoint(req, res, next), pay),
    ],
    ["an array", (app, endpoint, pay) => void app.post(path, [endpoint, pay])],
  ])("pays when mounted by %s", async (_how, mount) => {
    const { app, paid } = siteOf(framework, mount);
    expect(await instruct(app)).toMatchObject({ status: 200 });
    expect(paid).toEqual([path]);
  });

  test.each<[string, Mount]>([
    ["app.use without a path", (app, endpoint, pay) => void app.use(endpoint, pay)],
    [
      "a router's route whose handler calls it",
      (app, endpoint, pay, { Router }) =>
        void app.use(
          "/api/v1",
          Router().post("/transaction", (req, res, next) => endpoint(req, res, next), pay),
        ),
    ],
    [
      "router.use in front of routes",
      (app, endpoint, pay, { Router }) => {
        const router = Router();
        router.use(endpoint);
        router.post("/transaction", pay);
        app.use("/api/v1", router);
      },
    ],
  ])("refuses all payouts when mounted by %s", async (_how, mount) => {
    const { app, paid, codes } = siteOf(framework, mount);
    expect(await instruct(app)).toMatchObject({ status: 404 });
    expect({ paid, codes }).toEqual({ paid: [], codes: ["path-not-mounted"] });
  });

  test("is not fooled by a route of an earlier router that passed the request on", async () => {
    const { app, paid, codes } = siteOf(framework, (site, endpoint, pay, { Router }) => {
      site.use(path, Router().all("/sub", passOn));
      site.use(path, endpoint, pay);
    });
    expect(await instruct(app, { target: `${path}/sub` })).toMatchObject({ status: 404 });
    expect({ paid, codes }).toEqual({ paid: [], codes: ["path-not-mounted"] });
  });

  test.each([
    ["DELETE", path, 405],
    ["POST", `${path}/sub`, 404],
  ])(
    'with errors: "forward", leaves a signed %s of %s to the app and not to the handler',
    async (method, target, status) => {
      const paid: unknown[] = [];
      const app = framework();
      const pay = (_req: Request, res: Response): void => {
        paid.push(1);
        res.end();
      };
      app.use(path, payoutEndpoint(optionsWith({ errors: "forward" })), pay);
      app.use(guardErrors());
      expect(await instruct(app, { method, target })).toMatchObject({ status });
      expect(paid).toEqual([]);
    },
  );
});

describe("payoutEndpoint under plain node:http", () => {
  const paid: unknown[] = [];
  const listenerOf = (): RequestListener => {
    const endpoint = payoutEndpoint(optionsWith({ errors: "forward" }));
    return (req, res) =>
      endpoint(req, res, (error) => {
        if (error === undefined) paid.push(req.url);
        res.statusCode = isGuardError(error) ? error.status : 200;
        res.end();
      });
  };

  test("pays by POST where the server sends it", async () => {
    expect(await instruct(listenerOf())).toMatchObject({ status: 200 });
    expect(paid).toEqual([path]);
  });

  test.each(otherMethods)("refuses a signed %s with 405", async (method) => {
    paid.length = 0;
    expect(await instruct(listenerOf(), { method })).toMatchObject({ status: 405 });
    expect(paid).toEqual([]);
  });
});
