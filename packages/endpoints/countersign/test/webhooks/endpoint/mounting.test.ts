import type { IncomingMessage, ServerResponse } from "node:http";
import { webhookEndpoint } from "countersign/webhooks";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { RequestHandler } from "express";
import { exchange, withServer } from "@countersign/test-support/servers/wire.ts";
import {
  basic,
  delivery,
  envelope,
  expressVersions,
  handlerOf,
  optionsWith,
  path,
  rejections,
  type WebhookChanges,
} from "./endpoint.ts";
import type { Overrides } from "@countersign/test-support/runs/sections.ts";

type WebhookEndpointOptions = Parameters<typeof webhookEndpoint>[0];

const forged: WebhookChanges = { headers: { Authorization: basic("service", "wrong") } };

afterEach(() => {
  jest.restoreAllMocks();
});

const statusOf = async (port: number, changes: WebhookChanges = {}): Promise<string> =>
  (await exchange(port, delivery(changes))).slice(9, 12);

/** What came of each request, and how often `next` was called. */
async function called(
  call: (receive: ReturnType<typeof webhookEndpoint>, req: IncomingMessage, res: ServerResponse) => void,
  overrides: Overrides<WebhookEndpointOptions> = {},
) {
  const { codes, onReject } = rejections();
  const handled: string[] = [];
  const handler = handlerOf(({ event_id }) => void handled.push(event_id));
  const endpoint = webhookEndpoint(optionsWith({ handler, onReject, ...overrides }));
  const statuses = await withServer(
    (req, res) => call(endpoint, req, res),
    async (port) => [await statusOf(port), await statusOf(port, forged)],
  );
  return { statuses, codes, handled };
}

describe("webhookEndpoint under plain node:http", () => {
  test("called as (req, res) checks every request and answers it", async () => {
    expect(await called(([receive], req, res) => receive(req, res))).toEqual({
      statuses: ["200", "404"],
      codes: ["credentials-wrong"],
      handled: ["ev_1"],
    });
  });

  test("tells the refusal when it need not hide", async () => {
    const { statuses, handled } = await called(([receive], req, res) => receive(req, res), { hide: false });
    expect(statuses).toEqual(["200", "401"]);
    expect(handled).toEqual(["ev_1"]);
  });

  test.each([true, false])("never calls the next of a caller by hand, hide: %s", async (hide) => {
    const next = jest.fn();
    const { handled } = await called(([receive], req, res) => receive(req, res, next), { hide });
    expect(next).not.toHaveBeenCalled();
    expect(handled).toEqual(["ev_1"]);
  });

  test.each(["/", "/other", `${path}/below`, "*"])("checks a request for %s as well", async (target) => {
    const [receive] = webhookEndpoint(optionsWith({ onReject: () => undefined }));
    const next = jest.fn();
    const method = target === "*" ? "OPTIONS" : "POST";
    await withServer(
      (req, res) => receive(req, res, next),
      async (port) => expect(await statusOf(port, { ...forged, path: target, method })).toBe("404"),
    );
    expect(next).not.toHaveBeenCalled();
  });

  test.each([true, false])("is no process that ends on an error of a handler, hide: %s", async (hide) => {
    const warn = jest.spyOn(process, "emitWarning").mockReturnValue();
    const broken = new Error("broken");
    const handler = handlerOf();
    handler.handle = () => {
      throw broken;
    };
    const { statuses } = await called(([receive], req, res) => receive(req, res), { handler, hide });
    expect(statuses[0]).toBe(hide ? "404" : "500");
    expect(warn.mock.calls).toEqual(hide ? [] : [['webhookEndpoint failed: "Error: broken"']]);
  });

  test("answers an error that is handed to its second middleware", async () => {
    const next = jest.fn();
    const { statuses, codes } = await called(
      ([, onError], req, res) => onError(new Error("parser"), req, res, next),
      { hide: true },
    );
    expect(statuses).toEqual(["404", "404"]);
    expect(codes).toHaveLength(2);
    expect(next).not.toHaveBeenCalled();
  });
});

describe("webhookEndpoint with a router as connect", () => {
  /** As connect: keeps the target, and strips the mount path. */
  function mounted(mount: string, receive: ReturnType<typeof webhookEndpoint>[0], next: () => void) {
    return (req: IncomingMessage, res: ServerResponse): void => {
      const { url = "/" } = req;
      Object.assign(req, { originalUrl: url });
      const passed = (): void => {
        next();
        res.statusCode = 404;
        res.end("app");
      };
      if (!url.startsWith(mount)) return passed();
      req.url = url.slice(mount.length) || "/";
      return receive(req, res, passed);
    };
  }

  test("checks its path, and leaves refusals and other paths to the app", async () => {
    const { codes, onReject } = rejections();
    const next = jest.fn();
    const [receive] = webhookEndpoint(optionsWith({ onReject }));
    await withServer(mounted(path, receive, next), async (port) => {
      expect(await statusOf(port)).toBe("200");
      expect(next).not.toHaveBeenCalled();
      expect(await statusOf(port, forged)).toBe("404");
      expect(await statusOf(port, { path: `${path}/below` })).toBe("404");
      expect(next).toHaveBeenCalledTimes(2);
    });
    expect(codes).toEqual(["credentials-wrong"]);
  });

  test("says that it has no path where it checks nothing", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockReturnValue();
    const [receive] = webhookEndpoint(optionsWith());
    await withServer(
      mounted("", receive, () => {}),
      async (port) => {
        expect(await statusOf(port)).toBe("404");
        expect(await statusOf(port)).toBe("404");
      },
    );
    expect(warn.mock.calls).toEqual([[expect.stringContaining("write app.use(path, webhookEndpoint(...))")]]);
  });
});

describe.each(expressVersions)("webhookEndpoint on %s", (_version, factory) => {
  const tenants = "/hooks/:tenant";
  const bodyWithTwo = envelope("ev_1", "ev_2");

  test("in a route with a pattern checks whatever the pattern takes", async () => {
    const { codes, onReject } = rejections();
    const handled: string[] = [];
    const handler = handlerOf(({ event_id }) => void handled.push(event_id));
    const app = factory().set("env", "test");
    app.all(tenants, webhookEndpoint(optionsWith({ handler, onReject })));
    await withServer(app, async (port) => {
      expect(await statusOf(port, { path: "/hooks/a", body: bodyWithTwo })).toBe("200");
      expect(await statusOf(port, { ...forged, path: "/hooks/a" })).toBe("404");
    });
    expect(handled).toEqual(["ev_1", "ev_2"]);
    expect(codes).toEqual(["credentials-wrong"]);
  });

  test.each([
    ["a plain path", path],
    ["a pattern", tenants],
    ["two paths", [path, "/hooks/other"]],
  ])("in a route with %s never hands a request on to the handlers behind it", async (_name, route) => {
    const behind = jest.fn();
    const verified: RequestHandler = (_req, res) => {
      behind();
      res.end();
    };
    const app = factory().set("env", "test");
    app.all(route, webhookEndpoint(optionsWith({ onReject: () => undefined })), verified);
    const targets = [path, `${path}/`, path.toUpperCase()];
    await withServer(app, async (port) => {
      for (const target of targets) {
        // oxlint-disable-next-line no-await-in-loop -- one request after another
        expect(await statusOf(port, { ...forged, path: target })).toBe("404");
      }
      expect(await statusOf(port)).toBe("200");
    });
    expect(behind).not.toHaveBeenCalled();
  });

  test("in a handler of the app's own, in a route with a pattern, is checked too", async () => {
    const behind = jest.fn();
    const [receive] = webhookEndpoint(optionsWith({ onReject: () => undefined }));
    const app = factory().set("env", "test");
    app.post(
      tenants,
      (req, res, next) => receive(req, res, next),
      (_req, res) => {
        behind();
        res.end("verified");
      },
    );
    await withServer(app, async (port) => {
      expect(await statusOf(port, forged)).toBe("404");
      expect(await statusOf(port)).toBe("200");
    });
    expect(behind).not.toHaveBeenCalled();
  });

  test("is not below its path, whatever routes came before", async () => {
    const { codes, onReject } = rejections();
    const app = factory().set("env", "test");
    app.all(path, (_req, _res, next) => next());
    app.use(path, webhookEndpoint(optionsWith({ onReject })));
    await withServer(app, async (port) => {
      expect(await statusOf(port, { path: `${path}/below` })).toBe("404");
      expect(await statusOf(port)).toBe("200");
    });
    expect(codes).toEqual([]);
  });

  test("without a path says so once, since it checks nothing", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockReturnValue();
    const app = factory().set("env", "test");
    app.use(webhookEndpoint(optionsWith()));
    await withServer(app, async (port) => {
      expect(await statusOf(port)).toBe("404");
      expect(await statusOf(port)).toBe("404");
    });
    expect(warn.mock.calls).toEqual([[expect.stringContaining("write app.use(path, webhookEndpoint(...))")]]);
  });

  test("in a route of POST alone says once that OPTIONS shows the path", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockReturnValue();
    const app = factory().set("env", "test");
    app.post(path, webhookEndpoint(optionsWith()));
    app.post("/shown", webhookEndpoint(optionsWith({ hide: false })));
    await withServer(app, async (port) => {
      expect(await statusOf(port, { path: "/shown" })).toBe("200");
      expect(await statusOf(port)).toBe("200");
      expect(await statusOf(port)).toBe("200");
      expect(await statusOf(port, { method: "OPTIONS" })).toBe("200");
    });
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining("OPTIONS shows the hidden path: write app.use(")],
    ]);
  });

  test("at its path, and for requests below it or elsewhere, says nothing of the kind", async () => {
    const warn = jest.spyOn(process, "emitWarning").mockReturnValue();
    const app = factory().set("env", "test");
    app.post(path, (_req, _res, next) => next());
    app.use(path, webhookEndpoint(optionsWith()));
    app.all("/plain", webhookEndpoint(optionsWith()));
    app.route("/route").all(webhookEndpoint(optionsWith()));
    await withServer(app, async (port) => {
      for (const target of [path, "/plain", "/route"]) {
        // oxlint-disable-next-line no-await-in-loop -- one request after another
        expect(await statusOf(port, { path: target })).toBe("200");
      }
      for (const target of [`${path}/below`, "/elsewhere", "/PLAIN", "/plain/"]) {
        // oxlint-disable-next-line no-await-in-loop -- one request after another
        expect(await statusOf(port, { path: target })).toBe("404");
      }
    });
    expect(warn).not.toHaveBeenCalled();
  });
});
