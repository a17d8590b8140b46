// What each page says in one sentence, for search engines, links and llms.txt; and the words by which it is searched for.
const of = (description, keywords) => ({ description, keywords });

export const descriptions = {
  index: of(
    "Receive signed payouts and webhooks, each handled once: middlewares for Express, Fastify, Hono, Next.js, NestJS.",
    "home overview countersign",
  ),
  "guide/quick-start": of(
    "A platform in one file receives its first signed payout, in five minutes.",
    "start tutorial install",
  ),
  "guide/payouts": of(
    "Verify a signed payout and pay it once, in one transaction with its key.",
    "double payment idempotency duplicate paid twice raw body",
  ),
  "guide/webhooks": of(
    "Verify a webhook, and handle each of its events once.",
    "webhook signature hmac basic auth duplicate",
  ),
  "guide/body-parsers": of(
    "Mount express.json(), forms and uploads after a check: handlers read exactly the checked bytes.",
    "body parser express.json urlencoded multer undefined empty stream is not readable",
  ),
  "guide/middlewares": of(
    "Mount the seven middlewares one by one, in an order that is safe, and exchange any of them.",
    "middleware compose order chain mount key store nonce store swap",
  ),
  "guide/inbox": of(
    "Commit webhooks, answer at once, and work on their events afterwards.",
    "inbox queue slow handler dead letter",
  ),
  "guide/outcomes": of(
    "Tell the service how each payout ended, written in the transaction that settles it.",
    "outcome outbox settled failed report",
  ),
  "guide/unauthorized": of(
    "Find out why a request got 401, from the platform's log.",
    "401 unauthorized signature refused",
  ),
  "guide/explain": of(
    "Say in one sentence what the sender of a refused request has to change.",
    "401 debug signature base",
  ),
  "guide/sandbox": of(
    "Play the lending service on your machine, with a page of its traffic.",
    "test local simulate sender",
  ),
  "guide/inspector": of(
    "See the requests of a platform in development, and why they are refused.",
    "debug requests development",
  ),
  "guide/behind-a-proxy": of(
    "What a proxy must forward unchanged, and how it says who calls.",
    "nginx load balancer trust proxy x-forwarded-for tls",
  ),
  "guide/express-4-commonjs": of(
    "Use the middlewares on Express 4, by require().",
    "express require cjs raw body",
  ),
  "guide/fastify": of("Receive payouts and webhooks on Fastify 5, by plugins.", "plugin raw body"),
  "guide/hono-nextjs": of(
    "Receive payouts and webhooks on Hono, Next.js, Bun and Deno, by fetch handlers.",
    "vercel next hono bun deno fetch",
  ),
  "guide/nestjs": of("Receive payouts and webhooks in NestJS, on Express or Fastify.", "nest"),
  "guide/typescript": of(
    "What TypeScript, CommonJS, jest and pnpm need to load ES modules.",
    "typescript esm pnpm jest tsconfig",
  ),
  "guide/jest-vitest": of("Test your platform with real signed requests, in jest and vitest.", "test mock"),
  "guide/docker": of(
    "What works in a container, and what does not: stop, address, SQLite file.",
    "docker compose container kubernetes image",
  ),
  "guide/serverless": of(
    "Which hosts can receive payouts, and why frozen functions cannot.",
    "serverless lambda cloudflare workers vercel edge functions netlify",
  ),
  "guide/by-hand": of(
    "Replace hand-written checks step by step, each of which can be undone.",
    "migrate existing code",
  ),
  "guide/agents": of(
    "Rules and tested code for an assistant that wires the endpoints into an app.",
    "ai assistant agents llm",
  ),
  "guide/other-webhooks": of(
    "Verify webhooks of GitHub, Stripe, Slack, Svix and Shopify, and handle each once.",
    "webhook signature github stripe slack svix shopify hmac",
  ),
  "guide/idempotency-key": of(
    "Run each Idempotency-Key once, and repeat the first answer to retries.",
    "idempotency idempotent retry replay duplicate",
  ),
  "guide/stores": of(
    "Choose between SQLite, PostgreSQL, MariaDB and Redis.",
    "redis postgres sqlite mysql mariadb database",
  ),
  "guide/databases": of(
    "Pay in the transaction of Prisma, Drizzle, Kysely, Knex, TypeORM and other libraries.",
    "prisma drizzle kysely knex typeorm sequelize orm transaction",
  ),
  "guide/databases/pg": of(
    "Pay in a transaction of pg, the driver of PostgreSQL.",
    "pg postgres postgresql driver pool",
  ),
  "guide/databases/prisma": of(
    "Pay in an interactive transaction of Prisma, and keep prisma migrate off our tables.",
    "prisma orm postgres",
  ),
  "guide/databases/drizzle": of(
    "Pay in a transaction of Drizzle on PostgreSQL, MariaDB or SQLite.",
    "drizzle orm drizzle-kit",
  ),
  "guide/databases/kysely": of(
    "Pay in a transaction of Kysely on PostgreSQL or MariaDB.",
    "kysely query builder",
  ),
  "guide/databases/knex": of("Pay in a transaction of Knex on PostgreSQL or MariaDB.", "knex query builder"),
  "guide/databases/typeorm": of(
    "Pay in a transaction of TypeORM on PostgreSQL or MariaDB.",
    "typeorm orm entity manager",
  ),
  "guide/databases/sequelize": of(
    "Pay in a transaction of Sequelize on PostgreSQL or MariaDB.",
    "sequelize orm",
  ),
  "guide/databases/mikro-orm": of(
    "Pay in a transaction of MikroORM on PostgreSQL or MariaDB.",
    "mikroorm mikro-orm orm",
  ),
  "guide/databases/postgres-js": of("Pay in a transaction of postgres.js.", "postgres.js postgres driver"),
  "guide/databases/mysql2": of(
    "Pay in a transaction of mysql2 on MySQL or MariaDB.",
    "mysql2 mysql mariadb driver",
  ),
  "guide/databases/sqlite": of(
    "Pay in a transaction of libsql, better-sqlite3 or node:sqlite.",
    "sqlite libsql better-sqlite3 node:sqlite",
  ),
  "guide/several-machines": of(
    "Run several processes on one store, and restart them without a refusal.",
    "cluster redis scale failover region rolling deploy",
  ),
  "guide/past-one-machine": of(
    "What a failover loses on each engine, and the settings of clusters.",
    "failover galera group replication standby quorum replica aurora cockroachdb tidb",
  ),
  "guide/keys": of(
    "Where public keys live, what they say, and how a revoked one is forgotten.",
    "key store jwks directory cached keyid revoked forget",
  ),
  "guide/deploy": of(
    "nginx with TLS, three processes, health checks, systemd and pool sizes that fit each other.",
    "deploy production nginx tls systemd health check readiness liveness metrics pool size sigterm",
  ),
  "guide/rotation": of(
    "Change a signing key, a webhook secret or a password without a refused request, or revoke one at once.",
    "rotate rotation key secret password change stolen revoke withdraw",
  ),
  "guide/go-live": of("What to check before real payouts come, in order.", "production checklist"),
  "guide/operate": of(
    "List held payouts, decide about them, and prune, by commands.",
    "held operator crash resolve timeout",
  ),
  "guide/monitor": of(
    "Send refusals, passes and lives of keys to your metrics and log.",
    "metrics prometheus log alerts",
  ),
  "guide/doctor": of(
    "What countersign doctor examines, and the remedy for each finding.",
    "doctor configuration check",
  ),
  "guide/write-a-store": of(
    "A whole store of keys and one of nonces for another database, with the test that finds their mistakes.",
    "custom store write store KeyTable createIdempotencyStore contract",
  ),
  "concepts/transactions": of(
    "Why a payout, its key and its nonce commit together.",
    "transaction atomic commit lease",
  ),
  "concepts/failures": of(
    "What a crash, a timeout or a lost connection does to a payout.",
    "crash timeout failure kill double payment network power",
  ),
  "concepts/invariants": of(
    "What always holds for a key, with a name for each promise.",
    "invariants guarantee safety states",
  ),
  "concepts/architecture": of("How the packages are laid out, for contributors.", "contribute layout"),
  "concepts/fault-tests": of("The faults that tests cause, on each engine.", "crash kill test"),
  "concepts/hostile-requests": of(
    "What a server answers to dishonest requests, each with a test.",
    "attack smuggling replay forged",
  ),
  "concepts/spec": of(
    "What the service and a platform exchange, field by field.",
    "wire format protocol fields",
  ),
  "reference/codes": of("Cause and remedy of each code of a refusal.", "error code status"),
  "reference/glossary": of(
    "The words of these pages: payout key, adapter, check, verdict, fence, lease, held.",
    "payout key signing key adapter check verdict fence lease held words",
  ),
  "reference/store-rules": of(
    "The rules that each store of keys and nonces keeps, whatever its engine, and the mistake that each prevents.",
    "store contract rules atomic fence lease nonce",
  ),
  "reference/stores": of(
    "Options, functions, errors and limits of every store.",
    "retention prune postgres mariadb sqlite redis",
  ),
  "reference/operating": of("All commands and flags of an operator.", "countersign command flags held"),
  "reference/observe": of(
    "All channels, events, metrics and alerts.",
    "diagnostics channel metrics opentelemetry",
  ),
  "reference/alerts": of("What to do on each alert.", "runbook alert"),
  "reference/policies": of("Options that accept other profiles of RFC 9421.", "policy web bot auth profile"),
  "reference/not-supported": of("What is refused, or missing on purpose.", "limits unsupported"),
  "reference/rfc9421": of("Each demand of RFC 9421 and RFC 9530, its file and its test.", "rfc compliance"),
  "reference/performance": of("What a request costs, measured.", "benchmark latency throughput"),
  "reference/packages/mysql": of(
    "Idempotency keys and nonces in MySQL or MariaDB, in the same transaction as the payout.",
    "mariadb mysql mysql2 galera",
  ),
  "reference/packages/postgres": of(
    "Idempotency keys and nonces in PostgreSQL, in the same transaction as the payout.",
    "pg postgres postgresql pgbouncer",
  ),
  "reference/packages/sqlite": of(
    "Idempotency keys and nonces in a SQLite file, in the same transaction as the payout.",
    "better-sqlite3 libsql node:sqlite sqlite",
  ),
  "reference/packages/explain": of(
    "Says why a signed request was refused, and what its sender has to change.",
    "debugging diagnostics hmac signature base refused webhooks",
  ),
  "reference/packages/inspector": of(
    "Shows a developer each request that the guards have decided: verdicts, times, bytes, and what its sender has to change.",
    "debugging development inspector verdicts requests",
  ),
  "reference/packages/sandbox": of(
    "The lending service as a library: signs and sends payout instructions, serves its API, delivers webhooks.",
    "sandbox simulator testing payouts webhooks",
  ),
  "reference/packages/client": of(
    "Calls the lending service's API: creates a webhook endpoint.",
    "api-client countersign fetch receipt rfc9421 webhooks",
  ),
  "reference/packages/outcomes": of(
    "Reports each payout's outcome to the service: written in the transaction that settles it, sent until it is known there.",
    "countersign outbox payout transactional-outbox webhooks",
  ),
  "reference/packages/payout": of(
    "The payout endpoint: signature, allowlist, schema and idempotency assembled in the right order.",
    "countersign express http-message-signatures iban idempotency middleware payout rfc9421",
  ),
  "reference/packages/webhooks": of(
    "The webhook receiver: authentication, envelope, typed events handled once each.",
    "basic-auth countersign exactly-once express hmac middleware typed-events webhooks",
  ),
  "reference/packages/work": of(
    "Work for later that commits with what caused it: a table of tasks, their order, their attempts, their dead letters.",
    "countersign inbox job-queue outbox transactional-outbox worker",
  ),
  "reference/packages": of("All packages, and what each is for.", "packages"),
  "reference/api": of("Every export of each package.", "api exports"),
  changelog: of("What changed in each release.", "changelog release upgrade version"),
  security: of(
    "How to report a vulnerability, and which versions get fixes.",
    "security vulnerability supported versions",
  ),
};
