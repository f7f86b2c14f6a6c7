// Elements made of values. Text becomes text, never markup: nothing that was read from a file is parsed as HTML.

/** The element of this id. */
export const byId = (id) => document.getElementById(id);

/**
 * Make an element: el("button", {class: "wide", onclick: go}, "Go").
 * Keys beginning with "on" are listeners, "data" holds data attributes, others are attributes; null leaves one out.
 */
export function el(tag, options = {}, ...children) {
  const svg = ["svg", "path", "line"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "data") Object.assign(made.dataset, value);
    else if (name === "style") for (const [key, each] of Object.entries(value)) made.style.setProperty(key, each);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Words that begin with a capital, unless they begin with the name of a file, and end with a stop. */
export const sentence = (text) => `${text}.`.replace(/^[a-z]+(?=[\s,;:])/, (word) => `${word[0].toUpperCase()}${word.slice(1)}`).replace(/([.?!])\.$/, "$1");

/** A sentence at the foot of the page for some seconds. */
export function toast(text) {
  const place = byId("toast");
  place.textContent = sentence(text);
  place.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (place.hidden = true), 7000);
}

/** Let the browser keep a text as a file. */
export function download(name, text, kind = "text/csv") {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: kind })), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** 1234.5 as 1,234.5 */
export const number = (value) => value.toLocaleString("en");

/** A share in percent, with one digit. */
export const percent = (value) => `${(100 * value).toFixed(1)} %`;
