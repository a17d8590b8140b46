import express4 from "express4";
import { describeRows } from "./describe-doors.ts";
import { describePlainTcp, describeSockets } from "./describe-sockets.ts";
import { expressDoor } from "./express-door.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { honoDoor } from "./hono-door.ts";
import { hostileRows } from "./hostile-rows.ts";
import { nodeDoor } from "./node-door.ts";

const doors = [expressDoor("express 4", express4), nodeDoor, fetchBehindNode];

describeRows(hostileRows, doors);
describeSockets(doors);
describePlainTcp([...doors, honoDoor]);
