import { beforeEach } from "@jest/globals";
import express4 from "express4";
import { allowWarnings } from "../support/runs/expect-warning.ts";
import { describeRows } from "./describe-doors.ts";
import { describePlainTcp, describeSockets } from "./describe-sockets.ts";
import { expressDoor } from "./express-door.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { honoDoor } from "./hono-door.ts";
import { hostileRows } from "./hostile-rows.ts";
import { nodeDoor } from "./node-door.ts";

const doors = [expressDoor("express 4", express4), nodeDoor, fetchBehindNode];

// A policy of these rows may cover little: that is a warning of the factory.
beforeEach(() => {
  allowWarnings(/^\[signature-covers-little\]/);
});

describeRows(hostileRows, doors);
describeSockets(doors);
describePlainTcp([...doors, honoDoor]);
