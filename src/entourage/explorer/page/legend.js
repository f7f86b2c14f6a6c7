// What colours, shapes and sizes mean.

import { labelStyle } from "./colours.js";
import { byId, el, fill, number } from "./dom.js";

const MOST = 8;
const KINDS = 32; // of marks, before they repeat

function mark(colours, code) {
  const { colour, shape } = labelStyle(colours, code);
  return el("span", { class: "mark", style: { color: colour }, "aria-hidden": "true" }, shape);
}

/** Describe the colouring: "label" or the name of a column. */
export function showLegend(page, name) {
  const { scene, codes } = page.data;
  const { colours } = page.map;
  if (name === "label") {
    if (!codes) return fill(byId("legend"), el("p", {}, "The items have no labels."));
    if (scene.labels.length > MOST) {
      const shapes = el("span", { class: "mark", "aria-hidden": "true" }, [0, 1, 2, 3].map((code) => mark(colours, code)));
      return fill(byId("legend"), el("p", {}, shapes, ` ${number(scene.labels.length)} labels by colour and shape${scene.labels.length > KINDS ? `, which repeat after ${KINDS}` : ""}`));
    }
    const lines = scene.labels.map((label, code) => {
      const link = el("a", { href: page.addressOf({ label: code, item: undefined, region: undefined, view: undefined }) }, el("bdi", {}, label));
      return el("li", {}, mark(colours, code), link);
    });
    return fill(byId("legend"), el("ul", {}, lines));
  }
  const column = scene.columns[name];
  const stops = column.signed ? colours.signed : colours.ramp;
  const [low, high] = page.map.value.range;
  const { most } = column;
  const bar = el("span", { class: "ramp", style: { background: `linear-gradient(90deg, ${stops.join(", ")})` } });
  const ends = column.signed
    ? [`▼ −${(100 * high).toFixed(0)} points`, "● 0", `▲ +${(100 * high).toFixed(0)}`]
    : [`small ${low.toFixed(high > 2 ? 0 : 2)}`, "", `${most > high ? "≥ " : ""}${high.toFixed(high > 2 ? 0 : 2)} large`];
  return fill(byId("legend"), bar, el("p", { class: "ends" }, ends.map((text) => el("span", {}, text))), el("p", { class: "quiet" }, column.says));
}
