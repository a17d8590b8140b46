import type { Built } from "@countersign/core";
import { printable } from "../printable.ts";
import type { AppFacts } from "./app-facts.ts";
import type { Finding, Found } from "./findings.ts";

/** What is wrong with what stands in front of the checks: parsers, hooks, and proxies. */
export function orderFindings(found: Found, facts: AppFacts): readonly Finding[] {
  return [...parserFindings(found, facts), ...hookFindings(found, facts), ...trustFindings(found, facts)];
}

function parserFindings(found: Found, { guards }: AppFacts): readonly Finding[] {
  return guards
    .filter(({ behind }) => behind.length > 0)
    .map(({ name, path, behind }) => {
      const place = path === undefined ? "" : ` on ${printable(path)}`;
      const parsers = behind.join(" and ");
      return found(
        "parser-before-guard",
        `${parsers} reads the body before ${name}${place} can have its bytes`,
      );
    });
}

function hookFindings(found: Found, { earlyHooks }: AppFacts): readonly Finding[] {
  return earlyHooks.map(({ name, step, url }) => {
    const place = url === undefined ? "a scope" : printable(url);
    return found("hook-before-body", `${name} is an ${step} step of ${place}, where no body has been read`);
  });
}

const asksForAddress = new Set(["ipAllowlist", "webhookEndpoint"]);

function trustFindings(found: Found, { kind, trust, built }: AppFacts): readonly Finding[] {
  if (kind === "Fastify") return fastifyTrustFindings(found, trust, built);
  if (trust === undefined || !built.some((one) => asksForAddress.has(one.built))) return [];
  if (trust === "everybody") {
    return [found("trust-proxy-everybody", "trust proxy trusts every address, so callers choose their own")];
  }
  if (trust === "misread") {
    return [found("trust-proxy-misread", "Express reads the setting trust proxy otherwise than it looks")];
  }
  if (trust === "proxies") return [];
  const message =
    "trust proxy is not set: behind a proxy, its address is taken for the caller's, and http for https";
  return [found("trust-proxy-unset", message)];
}

/** Its doors read no setting of the app: they ask what they were given, which reads request.ip and request.protocol as a rule. */
function fastifyTrustFindings(
  found: Found,
  trust: AppFacts["trust"],
  built: readonly Built[],
): readonly Finding[] {
  const asks = built.some(({ facts }) => facts["clientAddress"] === true || facts["scheme"] === true);
  if (trust !== "everybody" || !asks) return [];
  const message =
    "trustProxy trusts every address, so callers choose what request.ip and request.protocol are";
  return [found("trust-proxy-everybody", message)];
}
