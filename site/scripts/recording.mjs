export function recordingSvg() {
  return { inline: "<svg></svg>", file: "<svg xmlns='http://www.w3.org/2000/svg'></svg>" };
}
