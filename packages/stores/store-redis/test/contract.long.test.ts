import { clients } from "./clients.ts";
import { defineContracts } from "./contract-over.ts";

const [redis, redisBefore, ioredis, ioredisBefore] = clients;

await defineContracts([
  [redis, "the server's"],
  [redisBefore, "moved"],
  [ioredis, "moved"],
  [ioredisBefore, "moved"],
]);
