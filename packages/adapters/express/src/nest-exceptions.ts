// Nest runs its exception filters inside of the handler that it gives to Express or Fastify: from outside, a filter's response to a throw
// looks like the handler's. All filters are run by one method of Nest. Up to Nest 11 it is found among the modules that Node has loaded by
// require; Nest 12 consists of ES modules, which Node lists nowhere, and is found where the app's main file, or its folder, finds Nest.
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { hooksOfResponse } from "./node-response.ts";
import type { GuardRequest } from "./types.ts";

/** Nest's ArgumentsHost. On Fastify the second argument is a reply. */
interface Host {
  getArgByIndex(index: number): object | undefined;
}

type Next = (this: unknown, exception: unknown, host: Host) => unknown;

const filters = /[\\/]@nestjs[\\/]core[\\/]exceptions[\\/]exceptions-handler\.js$/;
/** Nest sets it on a request whose handler never runs, since a pipe refused its arguments. */
const rejectedByPipes = Symbol.for("nestjs:rejected-by-pipes");

const searchedFor = new WeakSet();
const reporting = new WeakSet();
// Not import.meta.url, which is nothing in a bundle of CommonJS; files are asked for by their whole paths.
const load = createRequire(process.execPath);
const filtersOfModules = "@nestjs/core/exceptions/exceptions-handler.js";

/** Makes the exception filters of Nest report to the hooks of responses what they respond to. Does nothing without Nest. */
export function reportExceptions(req: GuardRequest & { readonly app?: object | undefined }): void {
  const app = req.app ?? serverOf(req);
  // Nest has been loaded before its app receives a request.
  if (searchedFor.has(app)) return;
  searchedFor.add(app);
  for (const file of Object.keys(load.cache)) if (filters.test(file)) adopt(load.cache[file]?.exports);
  // Nest needs reflect-metadata, and loads it first: without it, nothing of Nest is loaded here.
  if (typeof Reflect.get(Reflect, "getMetadata") === "function") adoptModules();
}

function adoptModules(): void {
  const [, main = ""] = process.argv;
  for (const place of [main, path.join(process.cwd(), "app.js")]) {
    try {
      // The module that the app has imported: Node has one of each file, by import or require.
      adopt(load(createRequire(path.resolve(place)).resolve(filtersOfModules)));
    } catch {
      // No Nest there, or one whose modules cannot be asked for by their names.
    }
  }
}

const elsewhere = {};

function serverOf({ socket }: GuardRequest): object {
  const server: unknown = Object(socket).server;
  return typeof server === "object" && server !== null ? server : elsewhere;
}

function adopt(exported: unknown): void {
  const prototype: unknown = Object(exported).ExceptionsHandler?.prototype;
  if (typeof prototype !== "object" || prototype === null || reporting.has(prototype)) return;
  reporting.add(prototype);
  const next: unknown = Reflect.get(prototype, "next");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- by its name, in Nest 9 to 12
  if (typeof next === "function") Reflect.set(prototype, "next", reportingNext(next as Next));
}

function reportingNext(next: Next): Next {
  return function reported(exception, host) {
    report(exception, host);
    return next.call(this, exception, host);
  };
}

function report(exception: unknown, host: Host): void {
  const res = host.getArgByIndex(1);
  if (typeof res !== "object" || res === null) return;
  const raw: unknown = Reflect.get(res, "raw");
  const hooks = hooksOfResponse(typeof raw === "object" && raw !== null ? raw : res);
  const isRejected = Reflect.get(Object(host.getArgByIndex(0)), rejectedByPipes) === true;
  if (isRejected) hooks?.neverBegan?.();
  hooks?.failedSomewhere?.(exception);
}
