// Maps: arrow keys go from area to area, and an area and its row of the table point at each other.

const links = (map) => [...map.querySelectorAll("a.area, a.flow")];
const mapOf = (element) => element.closest?.("svg.map");
const target = (link) => document.getElementById(link.getAttribute("href").slice(1));
const lines = (head) => (head.closest("tbody") ? head.closest("tr") : head);

let lit = [];
function clear() {
  for (const element of lit) element.classList.remove("lit");
  for (const spot of document.querySelectorAll("svg.map .spot")) spot.setAttribute("d", "");
  lit = [];
}

function light(link) {
  clear();
  const head = target(link);
  lit = [link, ...(head ? [lines(head)] : [])];
  for (const element of lit) element.classList.add("lit");
  const shape = link.matches(".area") && link.querySelector("path");
  if (shape) link.parentNode.querySelector(".spot").setAttribute("d", shape.getAttribute("d"));
  const reading = mapOf(link).closest("figure")?.querySelector("[data-reading]");
  if (reading) reading.textContent = link.getAttribute("aria-label");
}

// One stop for the tab key; from there arrow keys go on, in the order of the table.
function stopAt(link) {
  for (const other of links(mapOf(link))) other.tabIndex = other === link ? 0 : -1;
}

const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

function goOn(event) {
  const link = event.target.closest?.("svg.map a");
  if (!link || !(event.key in STEPS) || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const every = links(mapOf(link));
  const place = Math.min(Math.max(every.indexOf(link) + STEPS[event.key], 0), every.length - 1);
  stopAt(every[place]);
  every[place].focus();
}

function fromTable(event) {
  const row = event.target.closest?.("table.figures tbody tr");
  const head = row?.querySelector("th:last-of-type");
  const link = head?.id && document.querySelector(`svg.map a[href="#${head.id}"]`);
  if (link) light(link);
}

export function readyMaps(root) {
  lit = [];
  for (const map of root.querySelectorAll("svg.map")) {
    const [first] = links(map);
    if (first) stopAt(first);
    for (const title of map.querySelectorAll("a > title")) title.remove(); // said below the map
  }
}

export function watchMaps(root) {
  root.addEventListener("keydown", goOn);
  for (const kind of ["pointerover", "focusin"]) {
    root.addEventListener(kind, (event) => {
      const link = event.target.closest?.("svg.map a");
      if (link) light(link);
      else fromTable(event);
    });
  }
  root.addEventListener("click", (event) => {
    const link = event.target.closest?.("svg.map a");
    const head = link && target(link);
    if (!head) return;
    event.preventDefault(); // an address with a fragment would be another page to go back to
    stopAt(link);
    head.tabIndex = -1;
    head.focus({ preventScroll: true });
    head.scrollIntoView({ block: "center" });
    light(link);
  });
}
