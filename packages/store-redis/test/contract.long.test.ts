import { clients } from "./clients.ts";
import { defineContracts } from "./contract-over.ts";

const [, redisBefore, ioredis, ioredisBefore] = clients;

await defineContracts([
  [redisBefore, "moved"],
  [ioredisBefore, "moved"],
  [ioredis, "the server's"],
]);
