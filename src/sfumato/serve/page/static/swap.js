// Forms and some links are answered without loading the page anew: focus and what was opened stay where they are.

function address(form, submitter) {
  const data = new FormData(form, submitter);
  for (const field of form.querySelectorAll("[data-variable]")) {
    // All codes in one word, however many there are.
    if (field.querySelector("[data-all]").checked) data.set(`valueCodes[${field.dataset.variable}]`, "*");
    data.delete(`was[${field.dataset.variable}]`);
    data.delete(`find[${field.dataset.variable}]`);
  }
  const url = new URL(form.action, location.href);
  url.search = new URLSearchParams([...data].filter(([, text]) => text !== ""));
  return url;
}

const parts = (root) => root.querySelector("#main");

/** Links to other languages lead to what is shown now. */
function renewLanguages(page) {
  const fresh = page.getElementById("languages");
  if (fresh) document.getElementById("languages")?.replaceWith(document.importNode(fresh, true));
}

async function show(url, ready, { focus, push = true, cache = "default" } = {}) {
  const main = parts(document);
  main.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(url, { headers: { Accept: "text/html" }, cache });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = parts(page);
    if (!fresh) throw new Error("not a page");
    const open = [...main.querySelectorAll("details[open]:not(.menu)")].map((element) => element.id);
    const lists = new Map([...main.querySelectorAll("details .list")].map((list) => [list.closest("details").id, list.scrollTop]));
    main.replaceChildren(...document.importNode(fresh, true).childNodes);
    for (const id of open) if (id && document.getElementById(id)) document.getElementById(id).open = true;
    for (const [id, top] of lists) document.getElementById(id)?.querySelector(".list")?.scrollTo(0, top);
    renewLanguages(page);
    document.title = page.title;
    if (push) history.pushState({}, "", response.url);
    ready(main);
    const folded = document.getElementById(focus)?.closest("details:not([open])");
    if (folded) folded.open = true;
    (document.getElementById(focus) ?? document.getElementById("result-title"))?.focus();
    const said = main.querySelector("[data-announce]")?.textContent.trim() ?? "";
    document.getElementById("announce").textContent = said.replace(/\s+/g, " ");
  } catch {
    location.assign(url);
  } finally {
    main.removeAttribute("aria-busy");
  }
}

/** Only the answer is exchanged, so that writing in the form goes on. */
async function refresh(form, ready) {
  const url = address(form);
  const response = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok || String(address(form)) !== String(url)) return;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.getElementById("result");
  const old = document.getElementById("result");
  if (!fresh || !old) return;
  old.replaceWith(document.importNode(fresh, true));
  renewLanguages(page);
  history.replaceState({}, "", response.url);
  ready(document.getElementById("result"));
  document.getElementById("announce").textContent = document.querySelector("[data-announce]")?.textContent.trim() ?? "";
}

export function watchForms(root, ready) {
  root.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-swap]");
    if (!form) return;
    event.preventDefault();
    const focus = event.submitter?.name === "up" ? event.submitter.id : undefined;
    show(address(form, event.submitter), ready, { focus });
  });
  root.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-go]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    // New figures are not those that the browser has kept.
    show(new URL(link.href), ready, { focus: link.id, cache: link.id === "renew" ? "reload" : "default" });
  });
  // Some forms are answered while they are filled in: the field that is written in keeps the focus.
  let waiting = 0;
  root.addEventListener("input", (event) => {
    const form = event.target.form;
    if (!form?.matches("form[data-live]") || event.target.type !== "search") return;
    clearTimeout(waiting);
    waiting = setTimeout(() => refresh(form, ready), 250);
  });
  addEventListener("popstate", () => show(new URL(location.href), ready, { push: false }));
}
