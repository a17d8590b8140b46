import express4 from "express4";
import { describeAdapters } from "./describe-adapters.ts";
import { expressAdapter } from "./express-adapter.ts";
import { fastifyAdapter } from "./fastify-adapter.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { nodeAdapter } from "./node-adapter.ts";

describeAdapters([expressAdapter("express 4", express4), nodeAdapter, fastifyAdapter, fetchBehindNode]);
