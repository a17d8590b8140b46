// Every page, in the order in which it is offered. prepare.mjs fails where one of these is missing, or a page is not here.
const guide = (text, name) => ({ text, page: `guide/${name}` });

export const navigation = [
  {
    text: "Begin",
    items: [
      guide("Quick start", "quick-start"),
      guide("Receive payouts", "payouts"),
      guide("Receive webhooks", "webhooks"),
      guide("Compose the middlewares", "middlewares"),
      guide("Inbox", "inbox"),
      guide("Outcomes", "outcomes"),
      guide("I get a 401", "unauthorized"),
      guide("Explain a refused request", "explain"),
      guide("Sandbox", "sandbox"),
      guide("Inspector", "inspector"),
    ],
  },
  {
    text: "Your setting",
    items: [
      guide("Behind nginx or a load balancer", "behind-a-proxy"),
      guide("Express 4 and CommonJS", "express-4-commonjs"),
      guide("Fastify", "fastify"),
      guide("Hono and Next.js", "hono-nextjs"),
      guide("NestJS", "nestjs"),
      guide("TypeScript, CommonJS, jest, pnpm", "typescript"),
      guide("jest and vitest", "jest-vitest"),
      guide("Docker", "docker"),
      guide("Serverless", "serverless"),
      guide("Migrate from hand-written code", "by-hand"),
      guide("Instructions for coding assistants", "agents"),
    ],
  },
  {
    text: "One piece alone",
    items: [
      guide("GitHub, Stripe and Slack webhooks", "other-webhooks"),
      guide("Idempotency-Key", "idempotency-key"),
      guide("Body parsers", "body-parsers"),
    ],
  },
  {
    text: "In production",
    items: [
      guide("Choose a store", "stores"),
      guide("Several processes and machines", "several-machines"),
      guide("Keys and rotation", "keys"),
      guide("Go live", "go-live"),
      guide("Operate", "operate"),
      guide("Monitor", "monitor"),
      guide("Findings of the doctor", "doctor"),
      guide("Writing a store", "writing-a-store"),
    ],
  },
  {
    text: "Database libraries",
    items: [
      guide("Your database library", "databases"),
      guide("pg", "databases/pg"),
      guide("Prisma", "databases/prisma"),
      guide("Drizzle", "databases/drizzle"),
      guide("Kysely", "databases/kysely"),
      guide("Knex", "databases/knex"),
      guide("TypeORM", "databases/typeorm"),
      guide("Sequelize", "databases/sequelize"),
      guide("MikroORM", "databases/mikro-orm"),
      guide("postgres.js", "databases/postgres-js"),
      guide("mysql2, on MariaDB", "databases/mysql2"),
      guide("SQLite", "databases/sqlite"),
    ],
  },
  {
    text: "How it behaves",
    items: [
      { text: "One transaction", page: "concepts/transactions" },
      { text: "Failure modes", page: "concepts/failures" },
      { text: "The key and its invariants", page: "concepts/invariants" },
      { text: "Faults", page: "concepts/fault-tests" },
      { text: "Hostile requests", page: "concepts/hostile-requests" },
      { text: "The spec", page: "concepts/spec" },
    ],
  },
  {
    text: "Reference",
    items: [
      { text: "Codes", page: "reference/codes" },
      { text: "Glossary", page: "reference/glossary" },
      { text: "What the stores share", page: "reference/stores" },
      { text: "Operating a platform's stores", page: "reference/operating" },
      { text: "Observe", page: "reference/observe" },
      { text: "What to do on an alert", page: "reference/alerts" },
      { text: "Policies of others", page: "reference/policies" },
      { text: "What is not supported", page: "reference/not-supported" },
      { text: "What RFC 9421 and RFC 9530 demand", page: "reference/rfc9421" },
      { text: "Performance", page: "reference/performance" },
    ],
  },
];

/** At the end of the list: packages, API, and what changed. The first two are long, and have a page that lists them. */
export function referencePages(packages, api) {
  return [
    {
      text: "Packages",
      folded: true,
      page: "reference/packages",
      items: packages.map((name) => ({ text: name, page: `reference/packages/${name}` })),
    },
    {
      text: "API",
      folded: true,
      page: "reference/api",
      items: api.map((name) => ({ text: name, page: `reference/api/${name}` })),
    },
    {
      text: "The project",
      items: [
        { text: "Architecture", page: "concepts/architecture" },
        { text: "Changelog", page: "changelog" },
        { text: "Security", page: "security" },
      ],
    },
  ];
}
