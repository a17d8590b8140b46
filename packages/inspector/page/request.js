// One request in full: first what its sender has to change, then how it was found.

import { basesPart } from "./bases.js";
import { bodyPart } from "./bytes.js";
import { curlLine, paths } from "./calls.js";
import { block, h, headerLines, throttled, time, visible } from "./elements.js";
import { replaceParts } from "./keyed.js";
import {
  code,
  duration,
  facts,
  isRefusedByApp,
  outcomeBadge,
  plural,
  shellLines,
  toneOf,
  when,
} from "./parts.js";
import { get, Refusal } from "./service.js";
import { lifeList, verdictPart } from "./verdicts.js";

export function requestDetail(overview) {
  let id;
  let shown;
  let bases;
  const element = h("section", { class: "detail", "aria-label": "One request", tabindex: "-1" });
  const heading = h("div", { class: "heading" });
  const content = h("div", { class: "parts" });
  const back = h("a", { class: "back", href: "#/requests" }, "All requests");

  async function load() {
    const wanted = id;
    if (wanted === undefined) return;
    let found;
    try {
      found = await get(paths.request(wanted));
    } catch (error) {
      if (wanted === id) say(error instanceof Refusal ? error.message : "The platform does not answer.");
      return;
    }
    if (wanted !== id) return;
    const text = JSON.stringify(found);
    const isNew = shown === undefined;
    if (text === shown) return;
    shown = text;
    if (isNew) bases = basesPart();
    if (found.bases !== undefined) bases.update(found.bases.expected);
    heading.replaceChildren(
      h("h2", {}, `Request #${wanted}`),
      outcomeBadge(found.outcome, found.status),
      h("span", { class: "hint" }, time(found.at)),
    );
    replaceParts(content, detailParts(found, overview, bases.element));
    if (!heading.isConnected) element.replaceChildren(back, heading, content);
    if (isNew) element.focus({ preventScroll: true });
    if (isNew) element.scrollTo(0, 0);
  }
  const say = (text) => {
    shown = undefined;
    element.replaceChildren(back, h("h2", {}, `Request #${id}`), h("p", { class: "empty" }, visible(text)));
    element.focus({ preventScroll: true });
  };
  return {
    element,
    id: () => id,
    reload: throttled(200, () => void load()),
    open(number) {
      if (number === id && number !== undefined) return;
      id = number;
      shown = undefined;
      if (id !== undefined) void load();
      else {
        element.replaceChildren(
          h(
            "p",
            { class: "empty" },
            "Choose a request to see why it was refused, and each check that it went through.",
          ),
        );
      }
    },
  };
}

function detailParts(request, overview, bases) {
  const { verdicts, life, claim, explanations, headers, method, target } = request;
  const decisive = verdicts.find(({ outcome }) => outcome !== "pass") ?? verdicts.at(-1);
  return [
    h("p", { class: "target" }, code(`${method} ${target}`)),
    ...toldParts(request, overview),
    h("h3", {}, "Guards, in their order"),
    h("ol", { class: "verdicts" }, verdicts.map(verdictPart)),
    ...(request.bases === undefined ? [] : [h("h3", {}, "Signature base"), bases]),
    ...(life.length === 0 ? [] : [h("h3", {}, "What else happened"), lifeList(life, request.at)]),
    ...(claim === undefined || explanations.some((each) => isOf(claim, each))
      ? []
      : claimParts(claim, request)),
    h("h3", {}, "Request"),
    requestFacts(request),
    block("Line and header fields", `${method} ${target}\n${headerLines(headers)}`),
    bodyPart(request.body),
    ...(decisive === undefined ? [] : [h("h3", {}, "The same from elsewhere"), fromElsewhere(decisive)]),
  ].filter((part) => part !== undefined);
}

// Which option of inspector() has more said of a refusal.
const optionOf = {
  httpSignatureVerify: "signature",
  webhookHmac: "hmac",
  webhookBasicAuth: "basicAuth",
  ipAllowlist: "addresses",
};

/** What the sender has to change, in sentences, before anything else. */
function toldParts({ outcome, status, explanations, claim }, { explains }) {
  if (isRefusedByApp(outcome, status))
    return [toldPart("doubt", `Every check has let it pass; the app itself has answered ${status}.`)];
  if (outcome === "pass") return [toldPart("good", "Every check has let it pass: nothing is to be changed.")];
  return explanations.map((each) => {
    const option = optionOf[each.guard];
    // What holds the key says more than that it is held.
    const found = isOf(claim, each) ? { ...each, ...claim } : each;
    return explanationPart(found, toneOf(outcome), explains[option] === false ? option : undefined);
  });
}

function toldPart(tone, sentence) {
  return h("div", { class: `told ${tone}` }, h("p", {}, sentence));
}

/** Whether what the store says now of the key is about this refusal. */
function isOf(claim, { code: refusal }) {
  return claim?.code !== undefined && claim.code === refusal;
}

/** The way to where somebody decides about a key that waits for it. */
function decideLink(what) {
  const isOpen = what === "claim-held" || what === "claim-lease-ended";
  return isOpen && h("a", { href: "#/stores" }, "Decide about it");
}

function explanationPart({ guard, what, sentence, code: refusal, details }, tone, option) {
  return h(
    "div",
    { class: `told ${tone}` },
    h("p", {}, visible(sentence)),
    details.length > 0 &&
      h(
        "ul",
        {},
        details.map((line) => h("li", {}, linked(line))),
      ),
    decideLink(what),
    option !== undefined &&
      h(
        "p",
        {},
        "What the sender has to change is told with the options of the check: ",
        code(`inspector({ ${option} })`),
      ),
    h(
      "small",
      {},
      [guard, refusal, what === refusal ? undefined : what]
        .filter((part) => part !== undefined)
        .map(visible)
        .join(" \u00b7 "),
    ),
  );
}

/** A line that may end with the address of a page. */
function linked(line) {
  const [, text, href] = /^(.*?)(https:\/\/\S+)$/.exec(line) ?? [];
  if (href === undefined) return visible(line);
  return [visible(text), h("a", { href, target: "_blank", rel: "noreferrer" }, visible(href))];
}

function claimParts({ what, sentence, details }, { idempotencyKey }) {
  const decide = decideLink(what);
  return [
    h("h3", {}, "The idempotency key now"),
    h(
      "div",
      { class: `told ${decide === false ? "calm" : "doubt"}` },
      h("p", {}, visible(sentence)),
      details.map((line) => h("p", {}, visible(line))),
      decide,
      h("small", {}, visible(idempotencyKey)),
    ),
  ];
}

function requestFacts({
  status,
  scheme,
  clientAddress,
  keyid,
  idempotencyKey,
  nonce,
  durationMs,
  guards,
  at,
}) {
  return facts([
    ["Received", when(at)],
    ["Answered", status === undefined ? "not yet" : String(status)],
    ["Time", durationMs === undefined ? undefined : `${duration(durationMs)}, ${plural(guards, "guard")}`],
    ["From", code(clientAddress)],
    ["Scheme", scheme],
    ["keyid", code(keyid)],
    ["Nonce", code(nonce)],
    ["Idempotency", code(idempotencyKey)],
  ]);
}

function fromElsewhere({ id }) {
  return h(
    "div",
    {},
    shellLines([["API call", curlLine(paths.verdict(id), location.origin)]]),
    h(
      "p",
      { class: "hint" },
      "COUNTERSIGN_INSPECTOR_TOKEN is what stands behind #token= in the address that inspector() gives.",
    ),
  );
}
