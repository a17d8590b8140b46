import { subscribe } from "node:diagnostics_channel";
import { IncomingMessage } from "node:http";
import { Server, Socket } from "node:net";
import { pathToFileURL } from "node:url";
import { builtChannelName, type Built } from "@countersign/core/internal";
import { proxyTrust } from "@countersign/express/internal";
import type { GuardRequest } from "@countersign/express";
import { memberOf, messageOf } from "../command-io.ts";
import type { AppFacts, AppFault, ProxyTrust } from "./ask-app.ts";
import { mountedGuards } from "./express-stack.ts";
import { earlyHooks, trustProxyOf } from "./fastify-hooks.ts";

// Runs in its own process: an app opens connections and timers, writes to stdout, and may exit.

const built: Built[] = [];
const servers: Server[] = [];

async function main(file: string): Promise<void> {
  subscribe(builtChannelName, (message) => {
    if (isBuilt(message)) built.push(message);
  });
  Object.defineProperty(Server.prototype, "listen", { value: listen });
  const early = earlyHooks();
  const facts: AppFacts = { ...(await inspect(file)), earlyHooks: early };
  process.send?.(facts, () => process.exit(0));
}

async function inspect(file: string): Promise<Omit<AppFacts, "earlyHooks">> {
  let app: unknown;
  let fault: AppFault | undefined;
  try {
    app = await appOf(file);
    if (isFastify(app)) await app.ready();
  } catch (error) {
    fault = faultOf(error);
  }
  const express = isExpress(app) ? app : undefined;
  return {
    kind: express === undefined ? (isFastify(app) ? "Fastify" : "unknown") : "Express",
    built,
    guards: express === undefined ? [] : await mountedGuards(express),
    trust: express === undefined ? fastifyTrust(app) : trustOf(express),
    listens: servers.length > 0,
    fault,
  };
}

/** Replaces `listen`: the app believes that it listens. */
function listen(this: Server, ...args: readonly unknown[]): Server {
  servers.push(this);
  for (const callback of args) {
    if (typeof callback === "function") this.once("listening", () => void Reflect.apply(callback, this, []));
  }
  this.address = () => ({ address: "127.0.0.1", family: "IPv4", port: 0 });
  process.nextTick(() => this.emit("listening"));
  return this;
}

const names = ["app", "default", "createApp", "buildApp", "server"] as const;

async function appOf(file: string): Promise<unknown> {
  const loaded: Readonly<Record<string, unknown>> = await import(pathToFileURL(file).href);
  const inner: unknown = loaded["default"];
  const exports = typeof inner === "object" && inner !== null ? { ...loaded, ...inner } : loaded;
  for (const name of names) {
    const exported = exports[name];
    if (isExpress(exported) || isFastify(exported)) return exported;
  }
  if (isFastify(inner)) return inner;
  for (const name of names) {
    const factory = exports[name];
    if (typeof factory !== "function" || servers.length > 0) continue;
    // oxlint-disable-next-line no-await-in-loop -- the first one that makes an app
    const made: unknown = await Reflect.apply(factory, undefined, []);
    const app = typeof made === "object" && made !== null && "app" in made ? made.app : made;
    if (isExpress(app) || isFastify(app)) return app;
  }
  return servers.flatMap((server) => server.listeners("request")).find((listener) => isExpress(listener));
}

function trustOf(app: object): ProxyTrust {
  const codes = new Set<string>();
  const warnOnce = Object.assign(({ code }: { readonly code: string }) => void codes.add(code), {
    has: (code: string) => codes.has(code),
  });
  const req: GuardRequest = Object.assign(new IncomingMessage(new Socket()), { app });
  try {
    const trusts = proxyTrust.inspector(warnOnce)(req) !== undefined;
    return codes.size > 0 ? "misread" : trusts ? "proxies" : "nobody";
  } catch {
    return "everybody";
  }
}

function fastifyTrust(app: unknown): ProxyTrust | undefined {
  return isFastify(app) && trustProxyOf(app) === true ? "everybody" : undefined;
}

function isExpress(value: unknown): value is object {
  return typeof value === "function" && hasMethods(value, ["use", "set", "handle"]);
}

function isFastify(value: unknown): value is { ready(): Promise<unknown> } {
  return typeof value === "object" && value !== null && hasMethods(value, ["ready", "inject", "register"]);
}

function hasMethods(value: object, methods: readonly string[]): boolean {
  return methods.every((name) => typeof Reflect.get(value, name) === "function");
}

// An explainer reads the options of a check, but checks nothing.
const lookers = /explain|inspector/i;

function isBuilt(message: unknown): message is Built {
  const [factory, facts] = [memberOf(message, "factory"), memberOf(message, "facts")];
  return typeof factory === "string" && !lookers.test(factory) && typeof facts === "object" && facts !== null;
}

function faultOf(error: unknown): AppFault {
  return { message: messageOf(error), factory: textOf(error, "factory"), option: textOf(error, "option") };
}

function textOf(error: unknown, name: string): string | undefined {
  const text = memberOf(error, name);
  return typeof text === "string" ? text : undefined;
}

void main(process.argv[2] ?? "");
