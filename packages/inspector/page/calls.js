// The lines that ask the same from elsewhere. Nothing here knows the document.

const enc = encodeURIComponent;

export const paths = {
  overview: "/inspector/overview",
  stream: "/inspector/stream",
  requests: ({ outcome = "", before }) =>
    `/inspector/requests?limit=50${outcome === "" ? "" : `&outcome=${enc(outcome)}`}${before === undefined ? "" : `&before=${before}`}`,
  request: (id) => `/inspector/requests/${id}`,
  verdict: (id) => `/inspector/verdicts/${enc(id)}`,
  keys: (store, state) => `/inspector/stores/${enc(store)}/keys?state=${state}`,
  nonces: "/inspector/nonces",
};

/** A request of the API as a line of curl, which has the token in COUNTERSIGN_INSPECTOR_TOKEN. */
export function curlLine(path, url) {
  return `curl ${quoted(`${url}${path}`)} -H "X-Page-Token: $COUNTERSIGN_INSPECTOR_TOKEN"`;
}

// As `countersign keys held` does: what looks alike or is not seen must not lead to the key of another payment.
const plainKey = /^(?![-" ])[!-&(-[\]-~]+(?: [!-&(-[\]-~]+)*$/;

/** The command that decides about an attempt that holds its key: `done` or `released`. */
export function resolveLine({ key, fence }, outcome) {
  const named = plainKey.test(key) ? quoted(key) : `--key-json '${asciiJson(key)}'`;
  return `countersign keys resolve ${named} --as ${outcome} --fence ${fence}`;
}

function asciiJson(text) {
  return JSON.stringify(text).replaceAll(
    /[^\u0020-\u007e]|'/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
