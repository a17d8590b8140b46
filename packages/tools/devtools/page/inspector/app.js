// The views, and what every page of this kind has around them.

import { paths } from "./calls.js";
import { startFrame } from "./frame.js";
import { keysView } from "./keys.js";
import { html } from "./kit.js";
import { requestsView } from "./requests.js";
import { workView } from "./work.js";

void startFrame({
  makers: { requests: requestsView, keys: keysView, work: workView },
  paths,
  silent: "the platform does not answer",
  gate: {
    heading: "Open the address that the inspector gave",
    words: html`It is <code>pageUrl</code> of <code>inspector()</code>, and ends with a token for this start
      of the platform.`,
  },
});
