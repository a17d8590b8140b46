/** The codes of the refusals that this package makes. */
export type PostgresStoreCode = "transaction-not-begun";
