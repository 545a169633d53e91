// The page works without this: forms are sent, links are followed. Here it gets quicker and says more.
import { watchCodes, readyCodes } from "./codes.js";
import { watchCells, readyCells } from "./cells.js";
import { watchForms } from "./swap.js";
import { watchCopies } from "./copy.js";
import { watchPictures } from "./picture.js";
import { watchVersion } from "./fresh.js";
import { watchMaps, readyMaps } from "./map.js";

function ready(root) {
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
