import { test } from "@jest/globals";
import { Router } from "express";
import express4 from "express4";
import { assertHeld } from "./two-copies.ts";

test("a handler's throw is seen in a router of Express 5 in an app of Express 4", async () => {
  await assertHeld(express4(), Router());
});
