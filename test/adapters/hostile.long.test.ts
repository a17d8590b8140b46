import { beforeEach } from "@jest/globals";
import express4 from "express4";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import { describeRows } from "./describe-adapters.ts";
import { describePlainTcp, describeSockets } from "./describe-sockets.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { honoAdapter } from "./hono-adapter.ts";
import { hostileRows } from "./hostile-rows.ts";
import { nodeAdapter } from "./node-adapter.ts";

const adapters = [expressAdapter("express 4", express4), nodeAdapter, fetchBehindNode];

// A policy of these rows may cover little: that is a warning of the factory.
beforeEach(() => {
  allowWarnings(/^\[signature-covers-little\]/);
});

describeRows(hostileRows, adapters);
describeSockets(adapters);
describePlainTcp([...adapters, honoAdapter]);
