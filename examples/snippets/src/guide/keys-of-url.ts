import { jwksKeys } from "@countersign/http-signature-verify";

const keys = jwksKeys("https://service.example/.well-known/jwks.json");
await keys.ready(); // rejects when there is no set: a server that would answer 503 need not start
