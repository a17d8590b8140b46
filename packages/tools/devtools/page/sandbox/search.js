// One field that searches a list.

import { field, html, plainText } from "./kit.js";
import { pagedList } from "./list.js";

/**
 * A list of pages whose `read` gets the text that is searched for as well. `list()` is the one of that text; `search(text)` begins a
 * new one at its newest page, and shows the rows of the one before until it has its own.
 */
export function searchedList(init) {
  let text = "";
  let list;
  function search(wanted) {
    text = wanted;
    const before = list;
    list = pagedList({ ...init, read: (page) => init.read({ ...page, search: wanted }) });
    if (before !== undefined) Object.assign(list, { filter: before.filter, rows: before.rows });
    list.reload();
    if (before !== undefined) init.redraw();
  }
  const typed = ({ target }) => search(target.value);
  search("");
  return {
    list: () => list,
    text: () => text,
    search,
    searchField(placeholder) {
      return field(
        "Search",
        html`<input
          type="search"
          maxlength="256"
          value=${text}
          placeholder=${placeholder}
          oninput=${typed}
          ...${plainText}
        />`,
      );
    },
  };
}

/** Where the deliveries of an event are. */
export const deliveriesOf = (eventId) => `#/deliveries/search/${encodeURIComponent(eventId)}`;
