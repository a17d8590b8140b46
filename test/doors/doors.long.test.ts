import express4 from "express4";
import { describeDoors } from "./describe-doors.ts";
import { expressDoor } from "./express-door.ts";
import { fastifyDoor } from "./fastify-door.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { nodeDoor } from "./node-door.ts";

describeDoors([expressDoor("express 4", express4), nodeDoor, fastifyDoor, fetchBehindNode]);
