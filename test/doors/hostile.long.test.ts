import express4 from "express4";
import { describeRows } from "./describe-doors.ts";
import { expressDoor } from "./express-door.ts";
import { fetchBehindNode } from "./fetch-behind-node.ts";
import { hostileRows } from "./hostile-rows.ts";
import { nodeDoor } from "./node-door.ts";

describeRows(hostileRows, [expressDoor("express 4", express4), nodeDoor, fetchBehindNode]);
