// The colours of text on every page, which axe computes more slowly than all else: each way to style a text is looked at once.
import { seriousViolations } from "./browser.mjs";

const schemes = ["light", "dark"];
const colours = ["color-contrast", "link-in-text-block"];

/** Rules of axe for what {@link contrastProblems} does not look at. */
export const withoutColours = Object.fromEntries(colours.map((rule) => [rule, { enabled: false }]));

/**
 * What axe says of the texts within a place of a page, in light and dark, that are styled as no text was that `seen` has from earlier
 * pages: by the names, classes and styles of an element and of all around it.
 */
export async function contrastProblems(page, place, seen) {
  const problems = [];
  for (const scheme of schemes) {
    await page.evaluate((dark) => document.documentElement.classList.toggle("dark", dark), scheme === "dark");
    const styled = await page.evaluate(stylesOf, place);
    const isNew = styled.map((style) => !seen.has(`${scheme} ${style}`));
    for (const style of styled) seen.add(`${scheme} ${style}`);
    if (!isNew.includes(true)) continue;
    await page.evaluate(markThose, isNew);
    const found = await seriousViolations(page, "[data-contrast]", { runOnly: colours });
    problems.push(...found.map((text) => `axe, ${scheme}: ${text}`));
  }
  return problems;
}

/** In a page: how each text is styled, once; keeps an element of each. */
function stylesOf(place) {
  const chains = new Map();
  const chainOf = (element) => {
    if (element === null) return "";
    if (chains.has(element)) return chains.get(element);
    // Every second row of a table has a ground of its own.
    const isEven = element.matches("tr:nth-child(2n)") ? "even" : "";
    // Without the page's own name, which is a class.
    const classes = [...element.classList].filter((name) => !name.startsWith("_")).join(" ");
    const own = [element.localName, classes, element.getAttribute("style"), isEven].join("/");
    const chain = `${chainOf(element.parentElement)} > ${own}`;
    chains.set(element, chain);
    return chain;
  };
  const byStyle = new Map();
  for (const within of document.querySelectorAll(place))
    for (const element of within.querySelectorAll("*"))
      if ([...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== ""))
        if (!byStyle.has(chainOf(element))) byStyle.set(chainOf(element), element);
  globalThis.contrastElements = [...byStyle.values()];
  return [...byStyle.keys()];
}

/** In a page: marks the kept elements that are to be looked at. */
function markThose(marked) {
  for (const [index, element] of globalThis.contrastElements.entries())
    element.toggleAttribute("data-contrast", marked[index]);
}
