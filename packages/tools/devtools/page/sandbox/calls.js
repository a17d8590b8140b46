// What the page does, as data: the request to the service, and the command that does the same where there is one. Nothing here
// knows the document.

/** @typedef {{ title: string, words?: readonly string[], flags?: readonly (readonly [string, string?])[], method: "GET" | "POST",
 *   path: string, body?: object, shown?: Call, target?: "sandbox" | "platform" }} Call */

const enc = encodeURIComponent;

/** Every call that the page makes for somebody. */
export const calls = {
  deliveries: ({ state = "", before = "", search = "" }) => ({
    title: state === "" ? "deliveries" : `deliveries, ${state}`,
    method: "GET",
    path: `/sandbox/deliveries?limit=50${query({ state, search, before })}`,
  }),
  delivery: ({ id }) => ({
    title: `delivery #${id}`,
    method: "GET",
    path: `/sandbox/deliveries/${id}`,
  }),
  resend: (id) => ({
    title: `delivery #${id}: send again`,
    method: "POST",
    path: "/sandbox/deliveries/resend",
    body: { id: String(id) },
  }),
  control: (id, action) => ({
    title: `delivery #${id}: ${action}`,
    method: "POST",
    path: `/sandbox/deliveries/${id}/${action}`,
    body: {},
  }),
  spoil: (id, part) => ({
    title: `delivery #${id}: send it spoilt`,
    method: "POST",
    path: `/sandbox/deliveries/${id}/spoil`,
    body: { part },
  }),
  status: (kind, id, status) => ({
    title: `${kind} ${id}: ${status}`,
    method: "POST",
    path: `/sandbox/${kind}s/${enc(id)}/status`,
    body: { status },
  }),
  paymentRequest: (id, dueDate) => ({
    title: `payment request ${id}`,
    method: "POST",
    path: "/sandbox/payment-requests",
    body: { payment_request_id: id, due_date: dueDate },
  }),
  repayment: (id, action) => ({
    title: `payment request ${id}: ${action}`,
    method: "POST",
    path: `/sandbox/payment-requests/${enc(id)}/${action}`,
    body: {},
  }),
  /** `shown` is the same without what nobody may read over a shoulder. */
  endpoint({ url, username, password, secret }) {
    const call = (hidden, signing) => ({
      title: `endpoint ${url}`,
      method: "POST",
      path: "/api/v2/b2b-payments/webhook-endpoints",
      body: { url, auth_username: username, auth_password: hidden, signature_secret: signing },
    });
    return { ...call(password, secret), shown: call("[masked]", "[masked]") };
  },
  events: (events) => ({
    title: "edited events",
    method: "POST",
    path: "/sandbox/events",
    body: { events },
  }),
  event: (type, data) => ({
    title: `event ${type}`,
    words: ["trigger", type],
    flags: [["--data", JSON.stringify(data)]],
    method: "POST",
    path: "/sandbox/events",
    body: { type, data },
  }),
  payout: ({ url, info, count, fields, about }) => ({
    title: `payout: ${info.sends}`,
    words: ["payout"],
    flags: [
      ["--url", url],
      ["--key", about.keyFile],
      ["--keyid", about.keyid],
      ...Object.entries(fields).map(([name, value]) => [
        `--${name.replaceAll("_", "-")}`,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
      ...(info.flag === undefined ? [] : [[`--${info.flag}`, info.takesCount ? String(count) : info.value]]),
      ...(about.forwardedFor === undefined ? [] : [["--forwarded-for", about.forwardedFor]]),
      ...(isPlainElsewhere(url) ? [["--allow-http"]] : []),
    ],
    method: "POST",
    path: "/sandbox/payouts",
    body: { url, variant: info.variant, ...(info.takesCount ? { count } : {}), ...fields },
    target: "platform",
  }),
};

/** The words of a call's command, without the program's name; only for a call that has `words`. */
export function commandWords({ words, flags = [], target = "sandbox" }, url) {
  const given = flags.flatMap(([name, value]) => {
    if (value === undefined) return [name];
    return value.startsWith("-") ? [`${name}=${value}`] : [name, value];
  });
  const where = target === "sandbox" ? ["--url", url] : [];
  const isPlain = words.every((word) => !word.startsWith("-"));
  if (isPlain) return [...words, ...given, ...where];
  // What begins with a dash would be taken for a flag.
  const [command, ...values] = words;
  return [command, ...given, ...where, "--", ...values];
}

/** A call as a line for a shell, which has the API key in COUNTERSIGN_API_KEY. */
export function commandLine(call, url) {
  return ["countersign", ...commandWords(call, url).map(quoted)].join(" ");
}

/** A call as a line of curl, with the API key of a shell, or other header fields in its place. */
export function curlLine({ method, path, body }, url, access) {
  const keys = access?.map(quoted) ?? ['"X-API-KEY: $COUNTERSIGN_API_KEY"'];
  const parts = ["curl", quoted(`${url}${path}`), ...keys.flatMap((key) => ["-H", key])];
  if (method === "POST")
    parts.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(body)));
  return parts.join(" ");
}

function query(members) {
  const given = Object.entries(members).filter(([, value]) => value !== "");
  return given.map(([name, value]) => `&${name}=${enc(value)}`).join("");
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

function isPlainElsewhere(url) {
  return (
    /^http:\/\//i.test(url) &&
    !/^http:\/\/(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?(?:[/?]|$)/i.test(url)
  );
}
