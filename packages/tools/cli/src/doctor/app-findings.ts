import type { Built } from "@countersign/core/internal";
import { shownKey } from "../operator/key-text.ts";
import { printable, printableLine } from "../output.ts";
import type { AppFacts, AppFault, ProxyTrust } from "./ask-app.ts";
import { doubtsOf, findingsOf, type Doubt, type Finding, type FindingId, type Row } from "./findings.ts";
import { keyRows, keysOf, optionRows, type ReadOption } from "./option-rows.ts";

export function appFindings(
  subject: string,
  app: AppFacts,
  around: Pick<ReadOption, "now" | "isProduction">,
): readonly Finding[] {
  const found = findingsOf(subject);
  const severityOf = (id: FindingId): Finding["severity"] | undefined => {
    if (id === "memory-store") return around.isProduction ? "error" : "info";
    return id === "app-unknown" && hasChecks(app) ? "info" : undefined;
  };
  const doubts = [
    ...(app.fault === undefined ? [] : [doubtOf(app.fault)]),
    ...doubtsOf(appRows, app),
    ...app.built.flatMap((built) => optionDoubts(built, around)),
    ...app.built.flatMap((built) => keyDoubts(built, around.now)),
  ];
  return doubts.map(([id, text]) => found(id, text, severityOf(id)));
}

function optionDoubts(built: Built, around: Pick<ReadOption, "now" | "isProduction">): readonly Doubt[] {
  return optionRows.flatMap(([id, option, says]) => {
    const value = built.facts[option];
    if (value === undefined) return [];
    const doubts = doubtsOf([[id, says]], { value, factory: built.factory, ...around });
    return doubts.map(([, text]): Doubt => [id, `${placeOf(built)} ${text}`]);
  });
}

function keyDoubts(built: Built, now: number): readonly Doubt[] {
  return keysOf(built.facts["keys"]).flatMap((key) => {
    const doubts = doubtsOf(keyRows, { ...key, now }).slice(0, 1);
    return doubts.map(([id, text]): Doubt => [id, `key ${shownKey(key.keyid)} of ${placeOf(built)} ${text}`]);
  });
}

function placeOf({ factory, holder }: Built): string {
  return printable(holder === undefined ? factory : `${holder} of ${factory}`);
}

const appRows: readonly Row<AppFacts>[] = [
  [
    "app-unknown",
    ({ kind, fault }) =>
      kind === "unknown" &&
      fault === undefined &&
      "the module exports no Express or Fastify app; what it has built is examined, and not its order",
  ],
  [
    "no-guards",
    (app) => !hasChecks(app) && app.fault === undefined && "loading the app built no check of countersign",
  ],
  [
    "app-listens",
    ({ listens, fault }) => listens && fault === undefined && "the module listens when it is loaded",
  ],
  [
    "parser-before-guard",
    ({ guards }) =>
      guards
        .filter(({ behind }) => behind.length > 0)
        .map(({ name, path, behind }) => {
          const place = path === undefined ? "" : ` on ${printable(path)}`;
          return `${behind.join(" and ")} reads the body before ${name}${place} can have its bytes`;
        }),
  ],
  [
    "endpoint-wrapped",
    ({ kind, built, guards }) =>
      kind === "Express" &&
      built.some(({ factory }) => factory === "payoutEndpoint") &&
      guards.every(({ name }) => name !== "payoutEndpoint") &&
      "payoutEndpoint() was called, and no route has what it returned: in a router, a function that calls it makes each payout 404",
  ],
  [
    "hook-before-body",
    ({ earlyHooks }) =>
      earlyHooks.map(({ name, step, url = "a scope" }) => {
        return `${name} is an ${step} step of ${printable(url)}, where no body has been read`;
      }),
  ],
  trustRow("everybody", "every address is trusted, so callers choose their own address and scheme"),
  trustRow("misread", "Express reads the setting trust proxy otherwise than it looks"),
  trustRow(
    "nobody",
    "trust proxy is not set: behind a proxy, its address is taken for the caller's, and http for https",
  ),
];

function trustRow(trust: Exclude<ProxyTrust, "proxies">, text: string): Row<AppFacts> {
  const id = trust === "nobody" ? "trust-proxy-unset" : (`trust-proxy-${trust}` as const);
  return [id, (app) => asksProxies(app) && app.trust === trust && text];
}

function doubtOf({ message, factory, option }: AppFault): Doubt {
  const said = printableLine(message.trim()) || "it failed without a message";
  const text = /Unknown file extension "\.[cm]?tsx?"/.test(said)
    ? `${said}; give a built .js file, or install tsx and set NODE_OPTIONS="--import tsx"`
    : said;
  if (factory === undefined) return ["app-failed", text];
  if (option !== undefined && /(?:^|\.)keys\b/.test(option)) return ["key-refused", text];
  const isSecret = /secret|password|username|credentials|basicAuth|hmac/i.test(option ?? message);
  const isEmpty = /empty|undefined|exactly one of|unset/.test(message);
  return [isSecret && isEmpty ? "credentials-empty" : "options-refused", text];
}

function hasChecks({ built }: AppFacts): boolean {
  return built.some(({ factory }) => !factory.startsWith("memory"));
}

/** Fastify's adapters read no app setting, only what they were given, usually request.ip and request.protocol. */
function asksProxies({ kind, built }: AppFacts): boolean {
  return built.some(({ facts }) =>
    kind === "Fastify"
      ? facts["clientAddress"] === true || facts["scheme"] === true
      : "allow" in facts || "dangerouslyAllowHttp" in facts,
  );
}
