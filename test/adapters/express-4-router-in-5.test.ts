import { test } from "@jest/globals";
import express from "express";
import express4 from "express4";
import { assertHeld } from "./two-copies.ts";

test("a handler's throw is seen in a router of Express 4 in an app of Express 5", async () => {
  await assertHeld(express(), express4.Router());
});
