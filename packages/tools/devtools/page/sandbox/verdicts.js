// What answers prove. Nothing here knows the document.

const isTaken = (status) => status >= 200 && status <= 299;
// What the interface has a platform answer to a webhook that it does not believe.
const isRefusal = (status) => status === 401 || status === 404;

const isUnspoilt = ({ spoilt }) => spoilt === undefined;

/** Of an attempt of a delivery. A refused spoilt one proves nothing unless the same was taken unspoilt. */
export function attemptVerdict({ status, spoilt }, index, attempts) {
  if (spoilt === undefined) return { text: "", tone: isTaken(status) ? "good" : "bad" };
  if (isTaken(status)) return { text: "taken although it was spoilt", tone: "bad" };
  const unspoilt = attempts.slice(0, index).findLast(isUnspoilt) ?? attempts.slice(index).find(isUnspoilt);
  if (unspoilt === undefined) return { text: "not known: unspoilt it was not sent yet", tone: "doubt" };
  if (!isTaken(unspoilt.status))
    return { text: `not known: unspoilt it got ${unspoilt.status ?? unspoilt.error}`, tone: "doubt" };
  return isRefusal(status)
    ? { text: "refused, as it should be", tone: "good" }
    : { text: "401 or 404 is expected", tone: "bad" };
}

/** Of a payout. Its address may refuse everything: nothing is proven until it took one that is as it should be. */
export function payoutVerdict({ asExpected, isUrlProven }) {
  if (!asExpected) return { text: "not as expected", tone: "bad" };
  return isUrlProven
    ? { text: "as expected", tone: "good" }
    : { text: "not known: no unspoilt payout got 2xx there before", tone: "doubt" };
}
