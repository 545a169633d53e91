// How many figures the form asks for, said as it changes.
import { selected } from "./codes.js";
import { number, say } from "./words.js";

function count(form) {
  let figures = form.querySelectorAll('[data-metrics] input:checked').length;
  if (!figures) return { figures, problem: say("none") };
  for (const field of form.querySelectorAll("[data-variable]")) {
    if (field.querySelector("[data-place]").value === "out") continue;
    const chosen = selected(field);
    if (!chosen && "mandatory" in field.dataset) return { figures: 0, problem: say("mandatory", { variable: field.dataset.label }) };
    figures *= Math.max(chosen, 1);
  }
  const most = Number(form.dataset.most);
  if (figures <= most) return { figures, problem: "" };
  return { figures, problem: say("many", { count: number(figures), most: number(most) }) };
}

function show(form) {
  const output = form.querySelector("[data-cells]");
  const { figures, problem } = count(form);
  output.textContent = problem || say(figures === 1 ? "figure" : "figures", { count: number(figures) });
  output.classList.toggle("over", Boolean(problem));
}

export function readyCells(root) {
  const output = root.querySelector("[data-cells]");
  if (output) show(output.form);
}

export function watchCells(root) {
  root.addEventListener("change", (event) => {
    const form = event.target.closest?.("form");
    if (form?.querySelector("[data-cells]")) show(form);
  });
}
