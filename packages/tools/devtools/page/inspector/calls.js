// The requests of the API, and the lines that make them from elsewhere. Nothing here knows the document.

const enc = encodeURIComponent;

const part = (name, value = "") => (value === "" ? "" : `&${name}=${enc(value)}`);

export const paths = {
  overview: "/inspector/overview",
  stream: "/inspector/stream",
  requests: ({ filter, search, before }) =>
    `/inspector/requests?limit=50${part("outcome", filter)}${part("search", search)}${part("before", before)}`,
  work: "/inspector/work",
  tasks: ({ store, queue, state }) =>
    `/inspector/work/tasks?state=${enc(state)}${part("store", store)}${part("queue", queue)}`,
  request: (id) => `/inspector/requests/${id}`,
  verdict: (id) => `/inspector/verdicts/${enc(id)}`,
};

/** A request of the API as a line of curl, which has the token in COUNTERSIGN_INSPECTOR_TOKEN. */
export function curlLine(path) {
  const url = new URL(path, location.origin).href;
  return `curl '${url.replaceAll("'", "%27")}' -H "X-Page-Token: $COUNTERSIGN_INSPECTOR_TOKEN"`;
}

const ownCommands = new Set(["inbox", "outcomes"]);

/** The line of the command for a queue, or for one of its tasks; STORE_URL has the database. */
export function workLine(what, queue, id) {
  const words = ownCommands.has(queue)
    ? ["countersign", queue, what]
    : ["countersign", "work", what, "--queue", queue];
  return [...words, ...(id === undefined ? [] : [idWord(id)])].join(" ");
}

/** As the command prints an id: in JSON where a shell or a terminal would change it. */
function idWord(id) {
  if (/^(?!-)[\w@%+=:,./-]+$/.test(id)) return id;
  const ascii = JSON.stringify(id).replaceAll(
    /[^ -~]|'/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `--id-json '${ascii}'`;
}
