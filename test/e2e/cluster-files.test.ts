// examples/cluster, which needs Docker: checked here without it.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "@jest/globals";
import { parse } from "yaml";
import { readSettings } from "../../examples/settings/src/settings.ts";
import { servicePublicPem } from "../support/signers/test-keys.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = path.join(root, "examples/cluster");

interface Service {
  readonly image?: string;
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly networks?: readonly string[] | Readonly<Record<string, { readonly ipv4_address: string }>>;
  readonly network_mode?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, unknown>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const compose = parse(read("compose.yaml"), { merge: true, strict: true }) as Compose;
const nginxConf = read("nginx.conf");
const services = Object.entries(compose.services);
const platforms = services.filter(([name]) => name.startsWith("platform-"));

function read(name: string): string {
  return readFileSync(path.join(folder, name), "utf8");
}

/** A value as Docker reads it when nobody has set the variables in it. */
function substituted(value: string): string {
  return value.replaceAll(/\$\{\w+:-(?<usual>[^}]*)\}/g, "$<usual>");
}

describe("compose.yaml", () => {
  test("has the services of the topology, and two platforms that are alike", () => {
    expect(new Set(services.map(([name]) => name))).toEqual(
      new Set(["keys", "platform-1", "platform-2", "postgres", "proxy", "redis", "sandbox"]),
    );
    expect(platforms[0]?.[1]).toEqual(platforms[1]?.[1]);
  });

  test.each(services)("names only what is there in %s", (_name, service) => {
    expect(service.image).toMatch(/^[a-z-]+(?::\d[\w.-]*)?$/);
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      expect(compose.services).toHaveProperty(other);
      // A condition that its service can never meet would wait for ever.
      if (condition === "service_healthy") expect(compose.services[other]).toHaveProperty("healthcheck.test");
    }
    const networks = Array.isArray(service.networks) ? service.networks : Object.keys(service.networks ?? {});
    for (const network of networks) expect(compose.networks).toHaveProperty(network);
    for (const volume of service.volumes ?? []) {
      const [source = ""] = volume.split(":");
      if (source.startsWith("./")) expect(existsSync(path.join(folder, source))).toBe(true);
      else expect(compose.volumes).toHaveProperty(source);
    }
    if (service.build !== undefined) {
      const { context, dockerfile } = service.build;
      expect(path.resolve(folder, context)).toBe(path.resolve(root));
      expect(existsSync(path.join(root, dockerfile))).toBe(true);
    }
    // On this machine alone: nothing here has a secret that deserves the name.
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  });

  test("gives the platforms settings that they take: Redis with PostgreSQL, and nginx as the one proxy", () => {
    const keys = mkdtempSync(path.join(tmpdir(), "cluster-files-"));
    try {
      const file = path.join(keys, "keys.json");
      writeFileSync(file, JSON.stringify({ "service-1": servicePublicPem }));
      const environment = Object.entries(platforms[0]?.[1].environment ?? {});
      const env = Object.fromEntries(environment.map(([name, value]) => [name, substituted(value)]));
      expect(JSON.stringify(env)).not.toContain("$");
      const settings = readSettings({ ...env, PAYOUT_KEYS: file });
      expect(settings.store).toMatchObject({ kind: "redis", payouts: { kind: "postgres" } });
      const proxy = compose.services["proxy"]?.networks as Record<string, { ipv4_address: string }>;
      expect(settings.trustProxy).toEqual([proxy["cluster"]?.ipv4_address]);
      expect(settings.allowedIps).not.toContain(settings.trustProxy[0]);
      expect(settings.webhook?.allowHttp).toBe(true);
      const postgres = compose.services["postgres"]?.environment ?? {};
      const url = new URL(String(env["DATABASE_URL"]));
      expect([url.username, url.password, url.pathname.slice(1)]).toEqual(
        ["POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"].map((name) =>
          substituted(postgres[name] ?? ""),
        ),
      );
      expect([url.hostname, new URL(String(env["STORE_URL"])).hostname]).toEqual(["postgres", "redis"]);
    } finally {
      rmSync(keys, { recursive: true, force: true });
    }
  });

  test("runs a Redis that forgets no paid key by itself", () => {
    const command = compose.services["redis"]?.command?.join(" ");
    expect(command).toContain("--appendonly yes");
    expect(command).toContain("--maxmemory-policy noeviction");
  });
});

describe("nginx.conf", () => {
  test("has each platform of compose.yaml, at its port", () => {
    const targets = [...nginxConf.matchAll(/^\s+server (?<target>\S+:\d+)/gm)].map(
      (match) => match.groups?.["target"],
    );
    expect(targets).toEqual(platforms.map(([name, { environment }]) => `${name}:${environment?.["PORT"]}`));
    const inside = compose.services["proxy"]?.ports?.map((port) => port.split(":")[2]);
    const listening = [...nginxConf.matchAll(/listen (?<port>\d+);/g)].map((match) => match.groups?.["port"]);
    expect(listening).toEqual(inside);
  });

  test("hands paths on as they came", () => {
    const passed = [...nginxConf.matchAll(/proxy_pass (?<target>[^;]+);/g)].map(
      (match) => match.groups?.["target"],
    );
    for (const target of passed) expect(target).toMatch(/^http:\/\/[^/]+$/);
    expect(nginxConf).not.toMatch(/rewrite|gunzip|sub_filter|proxy_set_body|proxy_set_header Content/);
  });
});
