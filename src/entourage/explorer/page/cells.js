// How an item looks in a list: picture or text or id, its label, and a frame that says whether it is right.

import { el } from "./dom.js";
import { labelStyle } from "./colours.js";

const FRAMES = { 1: ["right", "✓", "same label"], 0: ["wrong", "✗", "other label"], "-1": ["open", "?", "label not known"] };

/** Makes cells of items; `page` has scene, source, data and map. */
export class Cells {
  constructor(page) {
    this.page = page;
  }

  /** The name of a point's label, or null. */
  label(row) {
    const { codes, scene } = this.page.data;
    return codes && codes[row] >= 0 ? scene.labels[codes[row]] : null;
  }

  /** The label of a code with its mark, as it is drawn on the map. */
  mark(code) {
    const { shape, colour } = labelStyle(this.page.map.colours, code);
    return el("span", { class: "mark", style: { color: colour }, "aria-hidden": "true" }, shape);
  }

  /** A picture, or a text, or an id. */
  look(row, name) {
    const { scene } = this.page.data;
    if (scene.kind === "pictures") {
      const image = el("img", { src: this.page.source.picture(row), alt: name?.id ?? String(row), loading: "lazy", draggable: "false" });
      image.addEventListener("error", () => image.replaceWith(el("span", { class: "text" }, name?.id ?? String(row))));
      return image;
    }
    return el("span", { class: "text" }, name?.text ?? name?.id ?? String(row));
  }

  /** A link to an item. `right`: 1, 0 or -1; `notes`: what is said beneath. */
  cell(row, name, { right = null, rank = null, notes = [], tag = "li" } = {}) {
    const [kind, sign, says] = right === null ? ["plain", "", ""] : FRAMES[right];
    const label = this.label(row);
    const code = this.page.data.codes?.[row];
    const bare = this.page.data.scene.kind === "ids"; // nothing to look at: its id takes the place of a name
    const id = name?.id ?? String(row);
    if (bare && label !== null && !notes.includes(id)) notes = [id, ...notes];
    const head = el(
      "span",
      { class: "head" },
      rank === null ? null : el("b", {}, String(rank)),
      label === null ? (bare ? el("bdi", { class: "name" }, id) : null) : [this.mark(code), el("bdi", { class: "name" }, label)],
      sign ? el("span", { class: "sign", title: says, "aria-label": says }, sign) : null,
    );
    const link = el(
      "a",
      { href: this.page.addressOf({ item: row, view: undefined }), title: name?.text ?? name?.id ?? "", data: { row } },
      bare ? null : el("span", { class: "look" }, this.look(row, name)),
      el("span", { class: "said" }, head, notes.map((note) => el("span", { class: "note" }, note))),
    );
    return el(tag, { class: `cell ${kind}`, data: { row } }, link);
  }
}
