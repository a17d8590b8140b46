// The frame of a page: which view is shown, what the stream tells it, and the question for the token.

import { field, html, plainText, show } from "./kit.js";
import { get, isTokenWrong, listen, setToken, takeToken } from "./service.js";

const main = document.querySelector("#main");
const live = document.querySelector("#live");

/**
 * Shows the view that the address names, `#/deliveries/12`, and keeps it told. `makers` makes each view, of the overview and of what draws it
 * anew, when it is first shown: `{ draw(), open(parts), refresh(), change(told, isShown) }`; the first of them is home. `overview` and
 * `stream` are paths of the service, `silent` is what stands there when it does not answer, `gate` are the heading and words that say where a
 * token is from. `onChange(told, refresh)` hears of each change before the views do.
 */
export async function startFrame({ makers, paths, silent, gate, onChange = () => {} }) {
  const [home] = Object.keys(makers);
  const views = new Map();
  let overview;
  let shown;

  function make(name) {
    const element = place();
    const redraw = () => show(element, view.draw());
    const view = makers[name](overview, redraw);
    views.set(name, { element, redraw, view });
  }
  function open() {
    const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
    const known = Object.hasOwn(makers, name) ? name : home;
    if (!views.has(known)) make(known);
    for (const link of document.querySelectorAll(".top nav a")) {
      if (link.hash === `#/${known}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const next = views.get(known);
    if (shown !== next) main.replaceChildren(next.element);
    shown = next;
    next.redraw();
    next.view.open(rest.map((part) => decodeURIComponent(part)));
  }
  async function refresh() {
    overview = Object.assign(overview ?? {}, await get(paths.overview));
    shown?.view.refresh();
  }
  const refreshLater = () => void refresh().catch(() => {});
  function change(told) {
    overview.counts = told.counts;
    onChange(told, refreshLater);
    for (const each of views.values()) each.view.change(told, each === shown);
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
  addEventListener("hashchange", open);
  open();
  await listen({ path: paths.stream, onChange: change, onState: setState });
}

function place() {
  const element = document.createElement("div");
  element.className = "view";
  return element;
}

function setLive(text, tone) {
  live.textContent = text;
  live.className = `live ${tone}`;
}

function takeTyped(event) {
  event.preventDefault();
  setToken(event.target.elements.token.value.trim().replace(/^.*#token=/, ""));
  location.reload();
}

/** Without the token that the start printed nothing is shown: other people on this machine can open the page as well. */
function askForToken({ heading, words }) {
  setLive("no token", "bad");
  const element = place();
  main.replaceChildren(element);
  show(
    element,
    html`<form class="card gate" onsubmit=${takeTyped}>
      <h2>${heading}</h2>
      <p>${words} Or paste it here.</p>
      ${field("Token", html`<input name="token" required ...${plainText} />`)}
      <button type="submit" class="primary">Open</button>
    </form>`,
  );
}
