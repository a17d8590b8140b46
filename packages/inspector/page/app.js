// The frame: which view is shown, and what the stream tells it.

import { paths } from "./calls.js";
import { field, h } from "./elements.js";
import { keysView } from "./keys.js";
import { tellTime } from "./parts.js";
import { requestsView } from "./requests.js";
import { get, isTokenWrong, listen, setToken, takeToken } from "./service.js";
import { storesView } from "./stores.js";

const main = document.querySelector("#main");
const live = document.querySelector("#live");
const makers = { requests: requestsView, keys: keysView, stores: storesView };
const views = new Map();
let overview;
let shown;

/** The view that the address names: `#/requests/12`. */
function show() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const known = Object.hasOwn(makers, name) ? name : "requests";
  if (!views.has(known)) views.set(known, makers[known](overview));
  const view = views.get(known);
  for (const link of document.querySelectorAll(".top nav a")) {
    if (link.hash === `#/${known}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (shown !== view) main.replaceChildren(view.element);
  shown = view;
  view.open(rest);
}

async function refresh() {
  overview = Object.assign(overview ?? {}, await get(paths.overview));
  shown?.refresh();
}

function setLive(text, tone) {
  live.textContent = text;
  live.className = `live ${tone}`;
}

function onChange(change) {
  overview.counts = change.counts;
  for (const view of views.values()) view.change(change, view === shown);
}

function onState(state) {
  if (state === "live") {
    setLive("live", "good");
    void refresh().catch(() => {});
  } else if (state === "refused") {
    askForToken();
  } else {
    setLive("the platform does not answer", "bad");
  }
}

async function start() {
  try {
    await refresh();
  } catch (error) {
    if (isTokenWrong(error)) askForToken();
    else setLive("the platform does not answer", "bad");
    return;
  }
  addEventListener("hashchange", show);
  show();
  setInterval(tellTime, 5000);
  await listen({ path: paths.stream, onChange, onState });
}

/** Without the token that the start printed nothing is shown: other people on this machine can open the page as well. */
function askForToken() {
  setLive("no token", "bad");
  const input = h("input", { name: "token", required: true, autocomplete: "off", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    setToken(input.value.trim().replace(/^.*#token=/, ""));
    location.reload();
  };
  main.replaceChildren(
    h(
      "form",
      { class: "card gate", onsubmit: submit },
      h("h2", {}, "Open the address that the inspector gave"),
      h(
        "p",
        {},
        "It is ",
        h("code", {}, "pageUrl"),
        " of ",
        h("code", {}, "inspector()"),
        ", and ends with a token for this start of the platform. Or paste it here.",
      ),
      field("Token", input),
      h("button", { type: "submit", class: "primary" }, "Open"),
    ),
  );
}

takeToken("#/requests");
void start();
