// What colours, shapes and sizes mean.

import { labelStyle } from "./colours.js";
import { byId, el, fill, number } from "./dom.js";

const MOST = 6;

/** Describe the colouring: "label" or the name of a column. */
export function showLegend(page, name) {
  const { scene, codes } = page.data;
  const { colours } = page.map;
  if (name === "label") {
    if (!codes) return fill(byId("legend"), el("p", {}, "The items have no labels."));
    const many = scene.labels.length > MOST;
    const order = page.map.names.order.slice(0, MOST);
    const lines = order.map((code) => {
      const { colour, shape } = labelStyle(colours, code);
      const link = el("a", { href: page.addressOf({ label: code, item: undefined, view: undefined }) }, scene.labels[code]);
      return el("li", {}, el("span", { class: "mark", style: { color: colour }, "aria-hidden": "true" }, shape), link);
    });
    const more = many ? el("p", { class: "quiet" }, `and ${number(scene.labels.length - MOST)} more, named on the map`) : null;
    return fill(byId("legend"), el("ul", {}, lines), more);
  }
  const column = scene.columns[name];
  const stops = column.signed ? colours.signed : colours.ramp;
  const [low, high] = page.map.value.range;
  const bar = el("span", { class: "ramp", style: { background: `linear-gradient(90deg, ${stops.join(", ")})` } });
  const ends = column.signed
    ? [`▼ −${(100 * high).toFixed(0)} points`, "●", `▲ +${(100 * high).toFixed(0)}`]
    : [`small ${low.toFixed(high > 2 ? 0 : 2)}`, "", `${high.toFixed(high > 2 ? 0 : 2)} large`];
  return fill(byId("legend"), bar, el("p", { class: "ends" }, ends.map((text) => el("span", {}, text))), el("p", { class: "quiet" }, column.says));
}
