// Lists of codes: search, all and none, and how many are selected.

const variable = (element) => element.closest("[data-variable]");
const boxes = (field) => [...field.querySelectorAll('[data-listed] input[type="checkbox"]')];
const every = (field) => field.querySelector("[data-all]");
const kept = (field) => field.querySelector("[data-kept]");

// The list of codes that is wanted in place of the one that is shown, if it is another: all of its codes are.
function other(field) {
  const option = field.querySelector("[data-list]")?.selectedOptions[0];
  return option && !option.defaultSelected ? option : null;
}

/** How many codes of a variable are selected. */
export function selected(field) {
  if (other(field)) return Number(other(field).dataset.size);
  if (every(field).checked) return Number(field.dataset.size);
  const further = kept(field)?.checked ? Number(kept(field).dataset.kept) : 0;
  return further + boxes(field).filter((box) => box.checked).length;
}

function say(field) {
  const size = Number(other(field)?.dataset.size ?? field.dataset.size).toLocaleString("en");
  const left = field.querySelector("[data-place]").value === "out";
  const text = left ? `Total of all ${size}` : `${selected(field).toLocaleString("en")} of ${size} selected`;
  field.querySelector("[data-count]").textContent = text;
  const said = field.querySelector("[data-regrouped]");
  if (!said) return;
  said.hidden = !other(field);
  for (const part of field.querySelectorAll(".tools, .list")) part.hidden = Boolean(other(field));
}

function tickAll(field, ticked) {
  every(field).checked = ticked;
  for (const box of boxes(field)) box.checked = ticked;
  if (kept(field)) kept(field).checked = ticked;
}

// A list that shows all codes is complete when each is ticked; of a long one only a part can be seen.
function afterTick(field) {
  const listed = boxes(field);
  const complete = listed.length === Number(field.dataset.size);
  every(field).checked = complete && listed.every((box) => box.checked);
}

function searchNear(field, words) {
  for (const box of boxes(field)) {
    const text = `${box.value} ${box.closest("label").textContent}`.toLowerCase();
    box.closest("li").hidden = !words.every((word) => text.includes(word));
  }
  // What codes lie in is shown above those that are left.
  for (const head of field.querySelectorAll("[data-above]")) {
    let next = head.nextElementSibling;
    while (next && next.hidden && !next.matches("[data-above]")) next = next.nextElementSibling;
    head.hidden = !next || next.matches("[data-above]");
  }
}

let waiting = 0;
async function searchFar(field, text) {
  const turn = ++waiting;
  const address = new URL(`${field.closest("form").action}/codes`, location.href);
  address.searchParams.set("variable", field.dataset.variable);
  address.searchParams.set("find", text);
  const named = field.querySelector("[data-list]")?.value;
  if (named) address.searchParams.set("codelist", named);
  const response = await fetch(address);
  if (!response.ok || turn !== waiting) return;
  const found = new DOMParser().parseFromString(await response.text(), "text/html");
  const list = field.querySelector("[data-listed]");
  const ticked = boxes(field).filter((box) => box.checked).map((box) => box.closest("li"));
  const held = new Set(ticked.map((item) => item.querySelector("input").value));
  const fresh = [...found.querySelectorAll("li")].filter((item) => !held.has(item.querySelector("input").value));
  list.querySelector("[data-found]").textContent = found.querySelector("[data-found]").textContent;
  list.querySelector("ul").replaceChildren(...ticked, ...fresh);
}

/** Tick the boxes of single codes where all are wanted: without this page's modules they stay empty. */
export function readyCodes(root) {
  for (const field of root.querySelectorAll("[data-variable]")) {
    if (every(field).checked) tickAll(field, true);
    say(field);
  }
}

export function watchCodes(root) {
  root.addEventListener("change", (event) => {
    const field = variable(event.target);
    if (!field) return;
    if (event.target.type !== "checkbox") return say(field);
    if (event.target === every(field)) tickAll(field, event.target.checked);
    else afterTick(field);
    say(field);
  });
  root.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-tick]");
    if (!button) return;
    const field = variable(button);
    const shown = boxes(field).filter((box) => !box.closest("li").hidden);
    if (shown.length === boxes(field).length) tickAll(field, button.dataset.tick === "all");
    else {
      for (const box of shown) box.checked = button.dataset.tick === "all";
      afterTick(field);
    }
    say(field);
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  root.addEventListener("input", (event) => {
    const kind = event.target.dataset?.find;
    if (!kind) return;
    const text = event.target.value.trim().toLowerCase();
    if (kind === "near") searchNear(variable(event.target), text.split(/\s+/).filter(Boolean));
    else searchFar(variable(event.target), text);
  });
  root.addEventListener("keydown", (event) => {
    // Searching is not sending.
    if (event.key === "Enter" && event.target.dataset?.find) event.preventDefault();
  });
}
