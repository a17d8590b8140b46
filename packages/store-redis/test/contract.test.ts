import { clients } from "./clients.ts";
import { defineContracts } from "./contract-over.ts";

const [redis, , ioredis] = clients;

// What depends on the client shows with the newer ones; those before them and the server's clock on both are in the long run.
await defineContracts([
  [redis, "moved"],
  [redis, "the server's"],
  [ioredis, "moved"],
]);
