import { describe, expect, test } from "@jest/globals";
import { GuardError } from "@countersign/core";
import { chain } from "@countersign/express/internal";
import { guard, guardErrors, type Middleware } from "@countersign/express";
import type express from "express";
import express4 from "express4";
import { expressVersionsWith } from "@countersign/test-support/runs/express-versions.ts";
import request from "supertest";

const refusal = new GuardError({ status: 403, code: "no", message: "no" });

describe.each(expressVersionsWith(express4))("chain on %s", (_name, framework) => {
  const visited: string[] = [];
  const visit = (name: string): Middleware => guard(name, () => void visited.push(name));

  test("runs its parts in order, then what follows, and lets an inline handler keep its types", async () => {
    const app = framework();
    visited.length = 0;
    app.get("/", chain("both", [visit("a"), guard("b", async () => void visited.push("b"))]), (req, res) => {
      res.send(req.path);
    });
    await request(app).get("/").expect(200, "/");
    expect(visited).toEqual(["a", "b"]);
  });

  test("stops at a refusal and hands it to its own responder", async () => {
    const app = framework();
    visited.length = 0;
    const refuse = guard("refuse", () => {
      throw refusal;
    });
    app.get("/", chain("own", [refuse, visit("later")], guardErrors()), () => void visited.push("handler"));
    await request(app).get("/").expect(403).expect("Content-Type", "application/problem+json");
    expect(visited).toEqual([]);
  });

  test("hands a refusal to the app without a responder of its own", async () => {
    const app = framework();
    const refuse = guard("refuse", async () => {
      throw refusal;
    });
    app.get("/", chain("forward", [refuse]), () => void visited.push("handler"));
    app.use(guardErrors());
    await request(app).get("/").expect(403);
  });

  test("passes over no part when one calls next with a value that Express takes for no error", async () => {
    const app = framework();
    visited.length = 0;
    const careless: Middleware = (_req, _res, next) => next(null);
    const refuse = guard("refuse", () => {
      throw refusal;
    });
    app.get("/", chain("careless", [careless, refuse], guardErrors()), () => void visited.push("handler"));
    await request(app).get("/").expect(403);
    expect(visited).toEqual([]);
  });

  test("leaves the handler's error to the app", async () => {
    const app = framework();
    app.get("/", chain("own", [visit("a")], guardErrors()), () => {
      throw refusal;
    });
    app.use(((_error, _req, res, _next) => void res.status(500).send("app")) as express.ErrorRequestHandler);
    await request(app).get("/").expect(500, "app");
  });
});

test("chain is named after its factory and copies its list", () => {
  const parts: Middleware[] = [];
  const composed = chain("payoutEndpoint", parts);
  parts.push(() => {
    throw new Error("added later");
  });
  let passed = false;
  composed({} as never, {} as never, () => {
    passed = true;
  });
  expect(composed.name).toBe("payoutEndpointMiddleware");
  expect(passed).toBe(true);
});
