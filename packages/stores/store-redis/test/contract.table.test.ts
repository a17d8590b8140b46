import { clients } from "./clients.ts";
import { defineContracts } from "./contract-over.ts";

const [redis] = clients;

// The other clients, and the server's clock, whose leases are waited for, are in the long run.
await defineContracts([[redis, "moved"]]);
