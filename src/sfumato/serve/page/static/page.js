// The page works without this: forms are sent, links are followed. Here it gets quicker and says more.
import { watchCodes, readyCodes } from "./codes.js";
import { watchCells, readyCells } from "./cells.js";
import { watchForms } from "./swap.js";
import { watchCopies } from "./copy.js";
import { watchPictures } from "./picture.js";
import { watchVersion } from "./fresh.js";
import { watchMaps, readyMaps } from "./map.js";

/** Where the form would stand before the table, it is folded; without this, a link leads past it. */
function fold(root) {
  const form = root.querySelector("#build");
  if (form && matchMedia("(max-width: 60rem)").matches) form.open = false;
}

function ready(root) {
  fold(root);
  for (const element of root.querySelectorAll("[data-enhanced]")) element.hidden = false;
  readyCodes(root);
  readyCells(root);
  readyMaps(root);
}

watchCodes(document);
watchCells(document);
watchCopies(document);
watchMaps(document);
watchPictures(document);
watchVersion();
watchForms(document, ready);
ready(document);
