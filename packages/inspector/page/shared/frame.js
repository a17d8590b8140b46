// The frame of a page: which view is shown, what the stream tells it, and the question for the token.

import { field, h } from "./elements.js";
import { get, isTokenWrong, listen, setToken, takeToken } from "./service.js";

const main = document.querySelector("#main");
const live = document.querySelector("#live");

/**
 * Shows the view that the address names, `#/deliveries/12`, and keeps it told. `makers` makes each view of the overview when it is first
 * shown: `{ element, open(parts), refresh(), change?(change, isShown) }`; the first of them is home. `overview` and `stream` are paths of the
 * service, `silent` is what stands there when it does not answer, `gate` are the heading and words that say where a token is from.
 * `onChange(change, refresh)` hears of each change before the views do.
 */
export async function startFrame({ makers, paths, silent, gate, onChange = () => {} }) {
  const [home] = Object.keys(makers);
  const views = new Map();
  let overview;
  let shown;

  function show() {
    const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
    const known = Object.hasOwn(makers, name) ? name : home;
    if (!views.has(known)) views.set(known, makers[known](overview));
    const view = views.get(known);
    for (const link of document.querySelectorAll(".top nav a")) {
      if (link.hash === `#/${known}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (shown !== view) main.replaceChildren(view.element);
    shown = view;
    view.open(rest.map((part) => decodeURIComponent(part)));
  }
  async function refresh() {
    overview = Object.assign(overview ?? {}, await get(paths.overview));
    shown?.refresh();
  }
  const refreshLater = () => void refresh().catch(() => {});
  function change(told) {
    overview.counts = told.counts;
    onChange(told, refreshLater);
    for (const view of views.values()) view.change?.(told, view === shown);
  }
  function setState(state) {
    if (state === "live") {
      setLive("live", "good");
      refreshLater();
    } else if (state === "refused") askForToken(gate);
    else setLive(silent, "bad");
  }

  takeToken(`#/${home}`);
  try {
    await refresh();
  } catch (error) {
    setState(isTokenWrong(error) ? "refused" : "lost");
    return;
  }
  addEventListener("hashchange", show);
  show();
  await listen({ path: paths.stream, onChange: change, onState: setState });
}

function setLive(text, tone) {
  live.textContent = text;
  live.className = `live ${tone}`;
}

/** Without the token that the start printed nothing is shown: other people on this machine can open the page as well. */
function askForToken({ heading, words }) {
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
      h("h2", {}, heading),
      h("p", {}, words, " Or paste it here."),
      field("Token", input),
      h("button", { type: "submit", class: "primary" }, "Open"),
    ),
  );
}
