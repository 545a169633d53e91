// Buttons that copy a link or some lines, and say that they did.
import { say } from "./words.js";

async function copy(element) {
  const text = element.value ?? element.textContent;
  if (navigator.clipboard && isSecureContext) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  // Away from HTTPS browsers only copy what is selected.
  const range = document.createRange();
  if (element.select) element.select();
  else {
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
  return document.execCommand("copy");
}

export function watchCopies(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (button) {
      const done = await copy(document.getElementById(button.dataset.copy)).catch(() => false);
      document.getElementById("announce").textContent = say(done ? "copied" : "notCopied");
      button.classList.toggle("done", done);
      return;
    }
    // A menu closes when something else is clicked.
    for (const menu of root.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });
  root.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && root.querySelector("details.menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
