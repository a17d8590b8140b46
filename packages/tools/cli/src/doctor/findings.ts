import { pageOf } from "@countersign/core/door";

/** `error` makes the command end with 1, `warning` with --strict alone, `info` never. */
export type Severity = "error" | "warning" | "info";

/** Something that is wrong, or may be. */
export interface Finding {
  readonly id: FindingId;
  readonly severity: Severity;
  /** What was looked at: the app, a URL or a store. */
  readonly subject: string;
  /** What was found there; printable text. */
  readonly message: string;
}

interface Kind {
  readonly severity: Severity;
  readonly remedy: string;
}

const error = (remedy: string): Kind => ({ severity: "error", remedy });
const warning = (remedy: string): Kind => ({ severity: "warning", remedy });
const info = (remedy: string): Kind => ({ severity: "info", remedy });

/** Every finding with its usual severity and what to do. Each has a section in docs/doctor.md, which a test compares. */
export const findingKinds = {
  "app-failed": error("Run the module by itself with the same environment, and mend what it says."),
  "app-listens": info("Export the app, or a function that makes it, from a module that does not listen."),
  "app-unknown": warning(
    "Export the Express or Fastify app, or a function that makes it, as app or default.",
  ),
  "options-refused": error("Change the option as the message says."),
  "credentials-empty": error(
    "Set the environment variable that the option is read from, and refuse to start without it.",
  ),
  "credentials-short": warning(
    "Make new ones with countersign endpoint create --generate, and register the endpoint anew.",
  ),
  "no-guards": error("Mount payoutEndpoint or webhookEndpoint, and build it when the module is loaded."),
  "parser-before-guard": error(
    "Mount the guard before the parser, or write express.json({ verify: captureRawBody }).",
  ),
  "hook-before-body": error("Make idempotencyHook a preHandler of the route."),
  "connection-unset": warning(
    "Behind a proxy, list it in Fastify's trustProxy, and give clientAddress and scheme; without one, nothing.",
  ),
  "trust-proxy-everybody": error(
    'List the addresses of your proxies: app.set("trust proxy", ["10.0.0.5"]), in Fastify trustProxy: ["10.0.0.5"].',
  ),
  "trust-proxy-misread": error(
    "Write a whole number of hops as a number, or addresses and CIDR blocks as texts.",
  ),
  "trust-proxy-unset": warning(
    'Behind a proxy, write app.set("trust proxy", [its addresses]); without one, nothing.',
  ),
  "address-any": warning("List the addresses from which the service calls."),
  "memory-store": error("Use the stores of SQLite, PostgreSQL or Redis in production."),
  "components-missing": error(
    "Leave requiredComponents at its default, or add the components that are named.",
  ),
  "body-unsigned": error("Leave allowUnsignedBody out, so that a signature covers the body by its digest."),
  "query-unsigned": warning(
    "Have the query covered by @query or @target-uri, or leave allowUnsignedQuery out.",
  ),
  "nonce-missing": warning(
    "Require the parameter nonce and give a nonce store, or know why a replay does no harm.",
  ),
  "key-refused": error(
    "Ask the key's owner for the public key once more, and vet it with countersign keys check.",
  ),
  "key-none-valid": error("Get a key that is valid now from the signer."),
  "key-expired": warning("Take the key out of the configuration."),
  "key-revoked": warning("Take the key out of the configuration."),
  "key-not-yet-valid": warning("Compare notBefore with the date that was agreed on with the signer."),
  "key-ends-soon": warning("Get the next key from the signer, and configure both until the change."),
  "key-duplicate": warning("Give each key one keyid: ask the signer which one is right."),
  "key-for-tests": error("Take the key out of what runs in production."),
  "beneficiary-unchecked": warning(
    "Give payoutEndpoint a findBusiness that knows the IBANs of your customers.",
  ),
  "webhook-http": warning("Leave dangerouslyAllowHttp out where the platform can be reached by others."),
  "keys-not-listable": warning(
    "Give your store a list(), so that countersign keys held can show what waits.",
  ),
  "retention-short": warning(
    "Raise retentionMs above the longest time after which the service may try again.",
  ),
  "url-unguarded": error("Mount payoutEndpoint or webhookEndpoint on this very path, before the handler."),
  "url-not-found": info("Compare the path with the one on which the endpoint is mounted."),
  "url-error": error("Read what the app wrote on stderr for this request."),
  "url-plain-http": warning("Put TLS in front, and give the service an https URL."),
  "url-unreachable": error("Start the app, and compare host, port and certificate."),
  "clock-off": error("Let both machines take their time from NTP, and look whether that works."),
  "store-unreachable": error(
    "Compare the address of the store and its credentials, and look whether it runs.",
  ),
  "tables-missing": error("Run countersign migrate with this store's URL, --schema and --table."),
  "migration-pending": error(
    "On PostgreSQL run countersign migrate, and then start the processes of this release; on SQLite starting them suffices.",
  ),
  "tables-newer": error("Install the release of the stores that brought the tables up to date."),
  "tables-unlogged": error("Run ALTER TABLE … SET LOGGED on each of the tables."),
  "tables-without-key": error("Run what is shown, as the owner of the tables."),
  "postgres-fsync": error("Set fsync = on in postgresql.conf, and restart the server."),
  "postgres-full-page-writes": warning(
    "Set full_page_writes = on, unless the file system writes whole pages.",
  ),
  "postgres-synchronous-commit": warning(
    "Set synchronous_commit = on for the role that keeps your payments.",
  ),
  "postgres-standby": error("Connect to the primary server."),
  "postgres-encoding": error("Create the database WITH ENCODING 'UTF8'."),
  "postgres-old": error("Upgrade the server to PostgreSQL 13 or newer."),
  "redis-evicts": error("Set maxmemory-policy noeviction, and give Redis the memory that it needs."),
  "redis-forgets": error("Set appendonly yes."),
  "redis-appendfsync": warning("Set appendfsync always, or know that a crash forgets the last second."),
  "redis-replica": error("Connect to the primary server."),
  "redis-old": error("Upgrade the server to Redis 6.2 or newer."),
  "redis-unreadable": info(
    "Look at maxmemory-policy, appendonly and appendfsync by hand: their rights hide them.",
  ),
  "sqlite-journal": warning(
    "Open the file once with createSqliteStores on a local disk: it sets journal_mode WAL.",
  ),
  "sqlite-synchronous": warning("Run PRAGMA synchronous = FULL on every connection that writes payments."),
  "keys-held": warning("Run countersign keys held, and decide about each."),
} satisfies Readonly<Record<string, Kind>>;

/** The name of a finding, and of its section in docs/doctor.md. */
export type FindingId = keyof typeof findingKinds;

/** Whose finding it is, so that several can be made of one subject. */
export type Found = (id: FindingId, message: string, severity?: Severity) => Finding;

/** Makes findings about `subject`. */
export function findingsOf(subject: string): Found {
  return (id, message, severity = findingKinds[id].severity) => ({ id, severity, subject, message });
}

/** The page about a finding. */
export function docsOfFinding(id: FindingId): string {
  return pageOf(`guide/doctor.html#${id}`);
}

/** What a store's server, or its file, says about itself. */
export interface StoreCondition {
  /** Pairs of an id and a message, as each engine has them. */
  readonly doubts: readonly (readonly [id: Finding["id"], message: string])[];
  /** The engine's clock, read between two times of this machine's; undefined where they are the same clock. */
  readonly clock?: { readonly theirsMs: number; readonly sentMs: number; readonly receivedMs: number };
  /** Whether the tables can be used as they are. */
  readonly usable: boolean;
}
