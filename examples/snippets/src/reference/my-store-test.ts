import { describe, test } from "node:test"; // or "@jest/globals"
import { testMyStore } from "./store-contract.js";

testMyStore({ describe, test });
