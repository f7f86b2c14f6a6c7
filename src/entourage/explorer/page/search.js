// The search box: ids, labels and texts, by mouse or keys.

import { byId, el, fill } from "./dom.js";

/** Let the search box find items and labels; chosen({item}) or chosen({label}). */
export function searchBox(page, chosen) {
  const [input, list] = [byId("search"), byId("found")];
  let [options, at, timer, asked, listed] = [[], -1, 0, 0, null];

  function close() {
    list.hidden = true;
    listed = null;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    at = -1;
  }

  function mark(next) {
    if (!options.length) return;
    at = (next + options.length) % options.length;
    [...list.children].forEach((each, number) => each.setAttribute("aria-selected", String(number === at)));
    list.children[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", list.children[at].id);
  }

  function choose(option) {
    close();
    input.value = "";
    input.blur();
    chosen(option);
  }

  function show({ labels, rows, names }) {
    at = -1;
    const byMeaning = page.source.live && page.data.scene.encoder && page.data.scene.kind === "texts";
    options = [...labels.map((label) => ({ label })), ...rows.map((item) => ({ item })), ...(byMeaning ? [{ text: input.value.trim() }] : [])];
    const made = options.map((option, number) =>
      el("li", { role: "option", id: `found-${number}`, "aria-selected": "false", onpointerdown: (event) => { event.preventDefault(); choose(option); } }, option.text !== undefined ? ["✚", el("span", { class: "name" }, option.text), el("span", { class: "quiet" }, "search by meaning")] : option.label !== undefined ? labelLine(option.label) : itemLine(option.item, names[option.item])),
    );
    fill(list, made.length ? made : el("li", { class: "quiet", role: "option", "aria-disabled": "true" }, "Nothing is called that."));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  const labelLine = (code) => [page.cells.mark(code), el("bdi", { class: "name" }, el("b", {}, page.data.scene.labels[code])), el("span", { class: "quiet" }, "label")];
  function itemLine(row, name) {
    const label = page.cells.label(row);
    const picture = page.data.scene.kind === "pictures" ? el("span", { class: "look tiny" }, page.cells.look(row, name)) : null;
    return [picture, el("bdi", { class: "name" }, name.text ?? name.id), label === null ? null : el("bdi", { class: "quiet" }, label)];
  }

  /** Ask for words, and show what is found unless others have been typed meanwhile. */
  async function find(words) {
    const number = ++asked;
    try {
      const found = await page.source.search(words);
      if (number !== asked || input.value.trim() !== words) return;
      show(found);
      listed = words;
    } catch (error) {
      page.failed(error);
    }
  }

  /** Choose what is marked, or the first; of what is typed now, not of what was listed for fewer letters. */
  async function enter() {
    const words = input.value.trim();
    clearTimeout(timer);
    if (!words) return;
    if (listed !== words || list.hidden) await find(words);
    if (listed === words && options.length) choose(options[Math.max(at, 0)]);
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    const words = input.value.trim();
    if (words) timer = setTimeout(() => find(words), 120);
    else close();
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      mark(at + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") enter();
    else if (event.key === "Escape") {
      event.stopPropagation();
      if (list.hidden) input.blur();
      close();
    }
  });
  input.addEventListener("blur", close);
}
