import { now, vector } from "../hand/vector.mjs";

const at = (offset) => String(now + offset);
const times = (created, expires) => ({
  created: created === undefined ? undefined : at(created),
  expires: expires === undefined ? undefined : at(expires),
});
const window = (id, shows, { created = 0, expires = 60, time = 0, ...more }) =>
  vector(id, shows, { parameters: times(created, expires), time: now + time, ...more });
const without = (...names) =>
  ["created", "expires", "keyid", "alg", "nonce"].filter((name) => !names.includes(name));
const noExpires = { policy: { requiredParameters: without("expires") } };
const noCreated = { policy: { requiredParameters: without("created") } };
const expired = { code: "signature-expired" };
const late = { parameters: times(undefined, undefined) };

export const theme = "Windows: created, expires and the clock, at their limits (RFC 9421 section 3.2.1)";
export const cases = [
  window("expires-is-created", "expires lies after created.", { expires: 0, code: "expires-invalid" }),
  window("expires-before-created", "expires does not lie before created.", {
    expires: -1,
    code: "expires-invalid",
  }),
  window("window-whole", "A signature may live as long as the window.", { expires: 60 }),
  window("window-exceeded", "A signature must not live a second longer than the window.", {
    expires: 61,
    code: "window-too-long",
  }),
  window("window-other", "The window is the policy's.", { expires: 300, policy: { windowSeconds: 300 } }),
  window("window-shortest", "A signature may live for one second.", { expires: 1 }),
  window("last-second", "A signature is valid at the second of expires.", { time: 60 }),
  window("expired", "A signature is not valid a second after expires.", { time: 61, ...expired }),
  window("expired-by-fraction", "A signature is not valid half a second after expires.", {
    time: 60.5,
    ...expired,
  }),
  window("expired-skew", "The skew is about clocks that are ahead, and prolongs nothing.", {
    time: 61,
    policy: { clockSkewSeconds: 300 },
    ...expired,
  }),
  window("expired-long-ago", "A signature of another day is not valid.", { time: 86_400, ...expired }),
  window("created-ahead", "created may lie ahead by the skew.", { time: -30 }),
  window("created-too-far-ahead", "created must not lie ahead by a second more.", {
    time: -31,
    code: "created-in-future",
  }),
  window("created-ahead-no-skew", "Without a skew, created may be now.", { policy: { clockSkewSeconds: 0 } }),
  window("created-ahead-by-one", "Without a skew, created must not lie a second ahead.", {
    time: -1,
    policy: { clockSkewSeconds: 0 },
    code: "created-in-future",
  }),
  vector("no-expires", "Without expires a signature ends a window after created.", {
    parameters: { expires: undefined },
    time: now + 60,
    ...noExpires,
  }),
  vector("no-expires-over", "Without expires it is not valid a second later.", {
    parameters: { expires: undefined },
    time: now + 61,
    ...noExpires,
    ...expired,
  }),
  vector("no-created", "Without created, expires lies ahead by window and skew at most.", {
    parameters: { created: undefined, expires: at(90) },
    ...noCreated,
  }),
  vector("no-created-too-far", "Without created, expires does not lie further ahead.", {
    parameters: { created: undefined, expires: at(91) },
    ...noCreated,
    code: "window-too-long",
  }),
  vector("no-created-expired", "Without created, expires is the end.", {
    parameters: { created: undefined, expires: at(-1) },
    ...noCreated,
    ...expired,
  }),
  vector(
    "no-times",
    "Without created and expires, where the policy lets that be, a signature does not end.",
    { ...late, time: now + 1_000_000, policy: { requiredParameters: ["keyid", "alg", "nonce"] } },
  ),
  vector("expires-long", "expires of 15 digits is too far away.", {
    parameters: { expires: "9".repeat(15) },
    code: "window-too-long",
  }),
  vector("created-long", "created of 16 digits is no integer.", {
    parameters: { created: "1".repeat(16) },
    received: false,
    code: "field-invalid",
  }),
  vector("expires-too-long", "expires of 16 digits is no integer.", {
    parameters: { expires: "1".repeat(16) },
    received: false,
    code: "field-invalid",
  }),
];
