import express5 from "express";
import express4 from "express4";
import { expressDoor } from "./express-door.ts";
import { fastifyDoor } from "./fastify-door.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { honoDoor } from "./hono-door.ts";
import { nodeDoor } from "./node-door.ts";
import { describePayments } from "./payments/describe-payments.ts";
import { slowRows } from "./payments/begin-rows.ts";
import { coreRows, paymentRows } from "./payments/rows.ts";

const careless = paymentRows.filter(({ appStatus }) => appStatus !== undefined);

describePayments(coreRows, [fetchBehindNode, honoDoor]);
describePayments([...coreRows, ...careless], [expressDoor("express 4", express4), nodeDoor, fastifyDoor]);
describePayments(slowRows, [expressDoor("express 5", express5)]);
