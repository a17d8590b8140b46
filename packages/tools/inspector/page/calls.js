// The requests of the API, and the lines that make them from elsewhere. Nothing here knows the document.

const enc = encodeURIComponent;

export const paths = {
  overview: "/inspector/overview",
  stream: "/inspector/stream",
  requests: ({ filter, before }) =>
    `/inspector/requests?limit=50${filter === "" ? "" : `&outcome=${enc(filter)}`}${before === undefined ? "" : `&before=${before}`}`,
  request: (id) => `/inspector/requests/${id}`,
  verdict: (id) => `/inspector/verdicts/${enc(id)}`,
};

/** A request of the API as a line of curl, which has the token in COUNTERSIGN_INSPECTOR_TOKEN. */
export function curlLine(path) {
  const url = new URL(path, location.origin).href;
  return `curl '${url.replaceAll("'", "%27")}' -H "X-Page-Token: $COUNTERSIGN_INSPECTOR_TOKEN"`;
}
