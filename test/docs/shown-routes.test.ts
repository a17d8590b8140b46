// Who copies a route that pays gets all checks of a payout with it, and who copies one for webhooks all of a webhook.
import { describe, expect, test } from "@jest/globals";
import { allShownCode } from "./shown-code.ts";
import { weakRoutes } from "./shown-routes.ts";

const shown = allShownCode();

test("there is code to look at, in READMEs, pages and snippets", () => {
  for (const place of [
    "README.md",
    "packages/checks/ip-allowlist/README.md",
    "site/pages/guide/behind-a-proxy.md",
  ])
    expect(shown.map((one) => one.place)).toContain(place);
});

test.each(shown)("no route of $place pays, or takes a webhook, with fewer checks", ({ pieces, place }) => {
  // A snippet's other pieces are files of their own, which are looked at for themselves.
  const own = place.endsWith(".ts") ? pieces.slice(0, 1) : pieces;
  const weak = own.flatMap((piece) => weakRoutes([piece, ...pieces.filter((other) => other !== piece)]));
  expect(weak).toEqual([]);
});

describe("what is found", () => {
  test.each<[title: string, code: string, paths: readonly string[]]>([
    [
      "an allowlist alone before a payout, as a page once had it",
      `app.use("/api/v1/transaction", ipAllowlist({ allow: ["192.0.2.10"] }));
       app.post("/api/v1/transaction", (_req, res) => { res.json({ status: "acknowledged" }); });`,
      ["/api/v1/transaction"],
    ],
    [
      "another path that answers as a payout does",
      `app.post("/orders", verify, (_req, res) => void res.json({ status: "acknowledged" }));`,
      ["/orders"],
    ],
    [
      "a sender's signature alone, whose messages can be replayed",
      `app.post("/webhooks/github", webhookHmac({ scheme: "github", secret }), jsonBody(), take);`,
      ["/webhooks/github"],
    ],
    [
      "an endpoint that admits every address",
      `app.post("/payouts", payoutEndpoint({ addresses: { allow, dangerouslyAllowAnyAddress: true } }), pay);`,
      ["/payouts"],
    ],
    [
      "single middlewares without the signature",
      `app.use("/payouts", ipAllowlist({ allow })); app.post("/payouts", rawBody(), jsonBody(), idempotencyGuard(options));`,
      ["/payouts"],
    ],
    [
      "single middlewares of a webhook without the password",
      `app.all(webhookPath, httpsOnly(), webhookHmac({ secret }), receiveWebhook(handler));`,
      ["webhookPath"],
    ],
    ["a chained route", `app.route("/payouts").post(ipAllowlist({ allow }), pay);`, ["/payouts"]],
    ["a route of Fastify", `app.route({ method: "POST", url: "/payouts", handler: pay });`, ["/payouts"]],
    [
      "a route of a framework with decorators",
      `class Payouts { @Post("payouts") receive() { return { status: "acknowledged" }; } }`,
      ["payouts"],
    ],
    [
      "a route that is a file",
      `export const POST = async (request: Request) => new Response();`,
      ["payout or transaction of a file"],
    ],
    [
      "a table of routes",
      `const routes = { "/api/v1/transaction": (request) => pay(request) };`,
      ["/api/v1/transaction"],
    ],
  ])("%s", (_title, code, paths) => {
    expect(weakRoutes([code])).toEqual(paths);
  });

  test.each<[title: string, pieces: readonly string[]]>([
    [
      "the whole endpoint",
      [`app.post("/payouts", payoutEndpoint({ addresses, signature, idempotency }), pay);`],
    ],
    [
      "the whole endpoint by a name of another piece",
      [`app.post("/payouts", receive, pay);`, `const receive = payoutEndpoint(options);`],
    ],
    [
      "all middlewares one by one, some of them for the whole path",
      [
        `app.use("/payouts", ipAllowlist({ allow }));
         app.post("/payouts", httpSignatureVerify({ keys, nonces }), jsonBody(), payOnce);`,
        `const payOnce = idempotencyGuard({ stores, key, handle });`,
      ],
    ],
    [
      "all middlewares of a webhook one by one",
      [
        `app.all(webhookPath, httpsOnly(), webhookBasicAuth(one), webhookHmac({ secret }), receiveWebhook(handler));`,
      ],
    ],
    [
      "what has nothing to do with payouts",
      [`app.get("/status", ipAllowlist({ allow }), (_req, res) => void res.end());`],
    ],
  ])("but not %s", (_title, pieces) => {
    expect(weakRoutes(pieces)).toEqual([]);
  });
});

// A sender may write other bytes in a later attempt of one message: by its bytes it would be 409 for as long as it is sent again.
test.each(shown)(
  "every guard of $place that acknowledges messages tells them apart by their key",
  ({ pieces }) => {
    const call = /idempotency(?:Guard|Hook)\(\{[\s\S]*?\n *\}\)/g;
    const guards = pieces.flatMap((piece) => piece.match(call) ?? []);
    const acknowledging = guards.filter((code) => code.includes("doneStatus: 200"));
    expect(acknowledging.filter((code) => !code.includes("fingerprint: () =>"))).toEqual([]);
  },
);
