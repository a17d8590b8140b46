import { jwksKeys } from "@countersign/http-signature-verify";

const keys = jwksKeys("https://service.example/.well-known/jwks.json");
// Rejects when there is no set: a server that could only answer 503 does
// not start.
await keys.ready();
