// The service's API as the page asks it: with the token of this start, which came as the address's fragment.

const storage = "countersign-page-token";

/** Whether the token is that of another start, or none. */
export function isTokenWrong(error) {
  return error instanceof Refusal && error.status === 401;
}

/** The service refused, in its own words. */
export class Refusal extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Takes the token out of the address, which then is `home`, so that neither a bookmark nor a picture of the window has it. */
export function takeToken(home) {
  const found = /^#token=([\w-]+)/.exec(location.hash);
  if (found === null) return;
  sessionStorage.setItem(storage, found[1]);
  history.replaceState(null, "", `${location.pathname}${home}`);
}

export const pageToken = () => sessionStorage.getItem(storage) ?? "";

export function setToken(token) {
  sessionStorage.setItem(storage, token);
}

/** Makes the request of a call, and gives its JSON. Throws a {@link Refusal}. */
export async function ask({ method = "GET", path, body }) {
  const answer = await request(path, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
  return answer.json();
}

export const get = (path) => ask({ path });

async function request(path, init = {}) {
  const headers = { ...init.headers, "X-Page-Token": pageToken() };
  const answer = await fetch(path, { ...init, headers, cache: "no-store", redirect: "error" });
  if (answer.ok) return answer;
  const { code, detail } = await answer.json().catch(() => ({}));
  throw new Refusal(answer.status, code, detail ?? `the answer is ${answer.status}`);
}

const pauseMs = 1000;

/**
 * Hears of changes at `path` until the page is left. An EventSource cannot name a token, so the stream is read here. `onState` gets
 * "live", "lost" or "refused"; after "live" everything may have changed.
 */
export async function listen({ path, onChange, onState }) {
  for (;;) {
    try {
      const { body } = await request(path);
      onState("live");
      await readEvents(body, onChange);
    } catch (error) {
      if (isTokenWrong(error)) {
        onState("refused");
        return;
      }
    }
    onState("lost");
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function readEvents(body, onChange) {
  let text = "";
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data !== undefined) onChange(JSON.parse(data.slice("data: ".length)));
    }
  }
}
