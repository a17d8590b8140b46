// The requests of this start, newest first.

import { h, visible } from "./elements.js";
import { get, takeToken } from "./service.js";

takeToken("#/requests");
const { requests } = await get("/inspector/requests");
document
  .querySelector("#main")
  .replaceChildren(
    ...requests.map(({ method, target, outcome, code = "" }) =>
      h("p", {}, visible(`${outcome} ${method} ${target} ${code}`)),
    ),
  );
