import {
  createRequestFact,
  GuardError,
  type RequestFact,
} from "@countersign/core";

const tenants: RequestFact<string> = createRequestFact();

/**
 * A check of your own: it takes what it needs, returns what it found, and
 * throws a refusal. It knows no framework.
 */
export function tenantOf(
  hostname: string,
  known: ReadonlySet<string>,
): string {
  const [tenant = ""] = hostname.split(".");
  if (known.has(tenant)) return tenant;
  throw new GuardError({
    status: 404,
    code: "tenant-unknown",
    message: "no such tenant",
  });
}

/**
 * Keeps what was found with the request, where no other code can overwrite
 * it.
 */
export function rememberTenant(req: object, tenant: string): void {
  tenants.set(req, tenant);
}

export function rememberedTenant(req: object): string | undefined {
  return tenants.get(req);
}
