/**
 * What is wrong after a soak; empty when nothing is.
 * `keys`: all that were sent. `paidKeys`: one for each payout on record. `wedged`: keys that no retry got accepted.
 * `answers`: `{ key, nonce, kind, status, unpaid, firstStatus }`. `passes`: the lines that the payers wrote down.
 */
export function judge({ keys, paidKeys, wedged, answers, passes }) {
  return [
    ...judgePayouts(keys, paidKeys),
    ...wedged.map((key) => `${key} is wedged: no retry was accepted`),
    ...answers.flatMap(judgeAnswer),
    ...judgeFirsts(answers),
    ...judgePasses(passes),
  ];
}

function judgePayouts(keys, paidKeys) {
  const counts = countBy(paidKeys);
  const wrong = keys.filter((key) => counts.get(key) !== 1);
  const sent = new Set(keys);
  const unknown = [...counts.keys()].filter((key) => !sent.has(key));
  return [
    ...wrong.map((key) => `${key} has ${counts.get(key) ?? 0} payouts`),
    ...unknown.map((key) => `${key} is paid, and was never sent`),
  ];
}

function judgeAnswer({ key, kind, status, unpaid, firstStatus }) {
  const faults = [];
  if (unpaid) faults.push(`${key} was answered with ${status} before it was paid`);
  // A replay of what was never received is the first of its nonce.
  const allowed = kind === "replay" ? [0, 200, 401, 409, 503] : [0, 200, 409, 503];
  if (!allowed.includes(status)) faults.push(`${key}, ${kind}, was answered with ${status}`);
  if (kind === "replay" && [200, 409].includes(firstStatus) && [200, 409].includes(status)) {
    faults.push(`${key}: a replay was answered with ${status} behind ${firstStatus}`);
  }
  return faults;
}

// Behind the first 2xx, everything else about a key is 409.
function judgeFirsts(answers) {
  const firsts = countBy(answers.filter(({ status }) => status === 200).map(({ key }) => key));
  return [...firsts]
    .filter(([, count]) => count > 1)
    .map(([key, count]) => `${key} was answered with 200 ${count} times`);
}

function judgePasses(passes) {
  const lines = passes.map((line) => line.split(" "));
  const of = (kind) => lines.filter(([first]) => first === kind);
  // The same claim may be noted twice, behind a lost reply; a second token is a second request.
  const claims = new Set(of("fresh").map(([, nonce, token]) => `${nonce} ${token}`));
  const fresh = countBy([...claims].map((claim) => claim.split(" ")[0]));
  const runs = countBy(of("run").map(([, nonce]) => nonce));
  const fences = countBy(of("run").map(([, , key, fence]) => `${key} with fence ${fence}`));
  const twice = (counts, what) =>
    [...counts].filter(([, count]) => count > 1).map(([name, count]) => `${what} ${name}: ${count} times`);
  return [
    ...twice(fresh, "accepted nonce"),
    ...twice(runs, "handler for nonce"),
    ...twice(fences, "handler for"),
    ...of("fault").map(([, ...words]) => `a payer failed: ${words.join(" ")}`),
  ];
}

function countBy(names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
