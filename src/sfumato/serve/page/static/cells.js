// How many figures the form asks for, said as it changes.
import { selected } from "./codes.js";

const number = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

function count(form) {
  let figures = form.querySelectorAll('[data-metrics] input:checked').length;
  if (!figures) return { figures, problem: "Choose at least one figure." };
  for (const field of form.querySelectorAll("[data-variable]")) {
    if (field.querySelector("[data-place]").value === "out") continue;
    const chosen = selected(field);
    if (!chosen && "mandatory" in field.dataset) return { figures: 0, problem: `Choose at least one code of ${field.dataset.label}.` };
    figures *= Math.max(chosen, 1);
  }
  const most = Number(form.dataset.most);
  if (figures <= most) return { figures, problem: "" };
  return { figures, problem: `${number(figures, "figure")} are too many: the most is ${most.toLocaleString("en")}. Choose fewer codes.` };
}

function say(form) {
  const output = form.querySelector("[data-cells]");
  const { figures, problem } = count(form);
  output.textContent = problem || number(figures, "figure");
  output.classList.toggle("over", Boolean(problem));
}

export function readyCells(root) {
  const output = root.querySelector("[data-cells]");
  if (output) say(output.form);
}

export function watchCells(root) {
  root.addEventListener("change", (event) => {
    const form = event.target.closest?.("form");
    if (form?.querySelector("[data-cells]")) say(form);
  });
}
