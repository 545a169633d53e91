// What scripts say, in the language of the page: texts from the page, numbers as its readers write them.

export const language = document.documentElement.lang || "en";

export const number = (count) => Number(count).toLocaleString(language);

/** A text of the page with values in place of its braces. */
export function say(name, values = {}) {
  const text = document.getElementById("words")?.dataset[name] ?? "";
  return text.replace(/\{(\w+)\}/g, (all, key) => values[key] ?? all);
}
