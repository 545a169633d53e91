// Lists of codes: search, all and none, and how many are selected.
import { language, number, say } from "./words.js";

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

function show(field) {
  const size = number(other(field)?.dataset.size ?? field.dataset.size);
  const left = field.querySelector("[data-place]").value === "out";
  const text = left ? say("left", { size }) : say("chosen", { count: number(selected(field)), size });
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

const plain = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");

// Whether two words are a letter apart, or two neighbours have changed places.
function near(one, other) {
  if (Math.abs(one.length - other.length) > 1 || Math.min(one.length, other.length) < 4) return false;
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const rest = (text, from) => text.slice(from);
  return [[1, 1], [0, 1], [1, 0]].some(([a, b]) => rest(one, at + a) === rest(other, at + b))
    || (one[at] === other[at + 1] && one[at + 1] === other[at] && rest(one, at + 2) === rest(other, at + 2));
}

// Codes that have every word; where none has, those that nearly have.
function searchNear(field, asked) {
  const words = asked.map(plain);
  const texts = new Map(boxes(field).map((box) => [box, plain(`${box.value} ${box.closest("label").textContent}`)]));
  const has = [...texts.values()].some((text) => words.every((word) => text.includes(word)));
  const fits = (text, word) => text.includes(word) || (!has && text.split(/[^\p{L}\p{N}]+/u).some((own) => near(own, word)));

  for (const box of boxes(field)) {
    const text = texts.get(box);
    box.closest("li").hidden = !words.every((word) => fits(text, word));
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
  address.searchParams.set("lang", language);
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
    show(field);
  }
}

export function watchCodes(root) {
  root.addEventListener("change", (event) => {
    const field = variable(event.target);
    if (!field) return;
    if (event.target.type !== "checkbox") return show(field);
    if (event.target === every(field)) tickAll(field, event.target.checked);
    else afterTick(field);
    show(field);
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
    show(field);
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
