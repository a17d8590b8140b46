import { defineContracts } from "./contract-over.ts";

defineContracts("moved");
