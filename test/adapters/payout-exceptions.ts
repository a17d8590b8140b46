import { samplePath } from "../support/signers/independent-signer.ts";
import { payoutUnauthorized, problem } from "./answers.ts";
import { payoutScene, signPayout } from "./payout-scene.ts";
import type { Exception, Row } from "./row.ts";
import type { AdapterName } from "./scene.ts";

type Exceptions = Readonly<Record<string, Readonly<Partial<Record<AdapterName, Exception>>>>>;

const notRouted = (why: string): Readonly<Partial<Record<AdapterName, Exception>>> => {
  const exception: Exception = { why, answer: "unknown-route" };
  return { "node:http": exception, fastify: exception, fetch: exception, "fetch behind node": exception };
};

/** Where routers disagree about what a path is: the adapter is never asked. */
export const routersDiffer: Exceptions = {
  "another case of the path": notRouted("only Express's routes match whatever the case"),
  "a slash at the end of the path": notRouted("only Express's routes match with a slash at the end"),
};

/** What a Request cannot be made of, or has lost of the wire. */
export const fetchSeesAnother: Exceptions = {
  "Content-Type twice": onFetch("Headers has merged the lines to a value that nobody has signed", {
    answer: payoutUnauthorized,
    code: "signature-mismatch",
  }),
  "an absolute-form target": {
    fetch: { why: "the URL of a Request is absolute anyway", answer: "unsendable" },
  },
};

export function onFetch(
  why: string,
  instead: Omit<Exception, "why">,
): Readonly<Partial<Record<AdapterName, Exception>>> {
  return { fetch: { why, ...instead }, "fetch behind node": { why, ...instead } };
}

export const inAnotherCase: readonly Row[] = [samplePath.toUpperCase(), `${samplePath}/`].map(
  (path): Row => ({
    title: `${path}, rightly signed`,
    scene: payoutScene(),
    request: () => signPayout({ path }),
    answer: problem(404, { code: "path-not-mounted" }),
    code: "path-not-mounted",
    except: notRouted("only Express's routes match it"),
    ran: 0,
    recorded: "free",
  }),
);

/** Ways to write the path that other readers take for it, and which of the adapters' routers do. */
const detours: readonly (readonly [target: string, code: string])[] = [
  ["/api/v1/x/../transaction", "target-invalid"],
  ["/api/v1/./transaction", "target-invalid"],
  ["/api/v1/x/%2e%2e/transaction", "target-invalid"],
  ["/api/v1/%2E/transaction", "target-invalid"],
  ["/api\\v1\\transaction", "target-invalid"],
  ["/api/v1/transaction#", "target-invalid"],
];

/** Each is signed as it is sent, and as the path that it leads to. */
export const targets: readonly Row[] = detours.flatMap(([path, code]) =>
  [path, samplePath].map((signed): Row => {
    const { headers, method, body } = signPayout({ path: signed });
    const routed = !path.endsWith("#");
    const elsewhere: Exception = { why: "no route matches", answer: "unknown-route" };
    return {
      title: `the target ${path}, signed as ${signed}`,
      scene: payoutScene(),
      request: () => ({ method, path, headers, body }),
      answer: payoutUnauthorized,
      code,
      ran: 0,
      recorded: "free",
      except: {
        ...(routed && { "express 5": elsewhere, "express 4": elsewhere, fastify: elsewhere }),
        ...(path.endsWith("#")
          ? {}
          : { fetch: { why: "a Request has its URL normalised", answer: "unsendable" } }),
      },
    };
  }),
);
