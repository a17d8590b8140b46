import { defineContracts } from "./contract-over.ts";

// Its leases are waited for.
defineContracts("the server's");
