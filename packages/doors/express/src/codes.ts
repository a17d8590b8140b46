/** The codes of the refusals of this door; those of a body whose bytes cannot be had are in BodyCode of core. */
export type ExpressCode = "header-lines-dropped" | "host-repeated" | "request-aborted" | "trust-proxy-unsafe";
