// One item: its neighbours before and after side by side, how ranks moved, and what the refiner looked at.

import { el, fill, percent } from "./dom.js";
import { followSettings, methodBox } from "./methods.js";
import { moved, relation } from "./words.js";

/** Fill the panel with an item, or with a query that was dropped. */
export function showItem(page, panel, view, { title, closed, query = false }) {
  const key = `${title}|${page.state.value.method ?? ""}`;
  const rest = el("div", { class: "rest" });
  if (panel.dataset.shown === key && panel.querySelector(".rest")) {
    panel.querySelector(".rest").replaceWith(rest); // the sliders stay, as one may be held
    followSettings(page, panel);
  } else {
    panel.dataset.shown = key;
    const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: closed }, "×");
    fill(panel, el("div", { class: "bar" }, el("h2", {}, title), close), query ? queryHead(view) : itemHead(page, view));
    panel.append(...(page.source.live ? [methodBox(page)] : []), rest);
  }
  const rankings = el("div", { class: "rankings" }, ranking(page.cells, view, "before"), ranking(page.cells, view, "after"));
  const parts = [el("h3", {}, "Nearest, before and after"), page.data.codes && !query ? frames() : null, rankings];
  fill(rest, parts, attention(page, view));
  requestAnimationFrame(() => connect(rankings, view));
}

function itemHead(page, view) {
  const { row, scores } = view;
  const name = view.names[row];
  const label = page.cells.label(row);
  const change = scores ? scores[1] - scores[0] : 0;
  const sign = change > 1e-9 ? "▲" : change < -1e-9 ? "▼" : "=";
  return el(
    "div",
    { class: "who" },
    page.data.scene.kind === "ids" ? null : el("span", { class: "look large" }, page.cells.look(row, name)),
    el(
      "dl",
      {},
      label === null ? null : [el("dt", {}, "Label"), el("dd", {}, page.cells.mark(page.data.codes[row]), " ", el("a", { href: page.addressOf({ label: page.data.codes[row], item: undefined, region: undefined }) }, el("bdi", {}, label)))],
      [el("dt", {}, "Id"), el("dd", { class: "id" }, name.id)],
      scores ? [el("dt", {}, "Average precision"), el("dd", { class: "whole" }, `${percent(scores[0])} → ${percent(scores[1])} `, el("b", { class: change < 0 ? "loss" : "gain" }, sign))] : null,
      row >= page.data.scene.items ? [el("dt", {}, "Part of"), el("dd", {}, "the gallery")] : null,
      el("dd", { class: "whole" }, el("button", { type: "button", class: "small", id: "close-up", title: "Zoom to it on the map ( z )", onclick: () => page.closeUp() }, "Zoom to it")),
    ),
  );
}

function queryHead(view) {
  return el("p", { class: "lead" }, el("bdi", {}, view.name), el("span", { class: "quiet" }, " · marked ✚ on the map, amid its nearest. It is refined against the gallery, but not added to it."));
}

function frames() {
  return el("p", { class: "frames" }, el("span", { class: "right" }, "✓ same label"), el("span", { class: "wrong" }, "✗ other label"), el("span", { class: "open" }, "? not known"));
}

function ranking(cells, view, when) {
  const { rows, similarities, others, right } = view[when];
  const list = rows.map((row, at) =>
    cells.cell(row, view.names[row], {
      right: right[at],
      rank: at + 1,
      notes: [`${moved(at + 1, others[at], when)} · ${similarities[at].toFixed(3)}`],
    }),
  );
  return el("section", { class: when }, el("h4", {}, when === "before" ? "Before" : "After"), list.length ? el("ol", {}, list) : el("p", { class: "quiet" }, "nobody"));
}

/** Lines between the same item in both lists. */
function connect(rankings, view) {
  rankings.querySelector("svg")?.remove();
  const box = rankings.getBoundingClientRect();
  const [left, right] = ["before", "after"].map((when) => rankings.querySelector(`.${when}`));
  if (!box.width || !left.querySelector("li") || !right.querySelector("li")) return;
  const lines = view.before.rows.flatMap((row) => {
    const ends = [left, right].map((list) => list.querySelector(`li[data-row="${row}"]`)?.getBoundingClientRect());
    if (!ends[0] || !ends[1]) return [];
    const [y1, y2] = ends.map((end) => end.top - box.top + end.height / 2);
    const [x1, x2] = [ends[0].right - box.left, ends[1].left - box.left];
    const middle = (x1 + x2) / 2;
    return [el("path", { d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`, class: y1 === y2 ? "level" : y2 < y1 ? "up" : "down" })];
  });
  rankings.append(el("svg", { width: box.width, height: box.height, "aria-hidden": "true" }, lines));
}

function attention(page, view) {
  const looked = view.attention;
  if (!looked || !looked.rows.length) return null;
  const order = looked.rows.map((_, at) => at).sort((one, other) => total(looked, other) - total(looked, one));
  const most = Math.max(...looked.weights.flat(), 1e-9);
  const same = looked.weights.length === 1;
  const steps = looked.steps;
  const says = same
    ? `How much of its attention each neighbour gets${steps > 1 ? `: the same in each of the ${steps} steps, while the neighbours themselves move` : ""}.`
    : `How much of its attention each neighbour gets, in each of the ${steps} steps.`;
  const lines = order.map((at) => {
    const row = looked.rows[at];
    const bars = Array.from({ length: steps }, (_, step) => looked.weights[same ? 0 : step][at]);
    const heights = same
      ? el("i", { style: { width: `${(100 * bars[0]) / most}%` } })
      : bars.map((weight, step) => el("i", { style: { height: `${Math.max(4, (100 * weight) / most)}%` }, title: `step ${step + 1}: ${percent(weight)}` }));
    const share = el("span", { class: "share" }, percent(bars.reduce((sum, each) => sum + each, 0) / bars.length));
    const why = looked.shared && el("details", {}, el("summary", {}, "why"), el("p", {}, relation({ shared: looked.shared[at], mine: looked.mine[at], theirs: looked.theirs[at], trust: looked.trust[at], length: looked.length })));
    return el("li", {}, page.cells.cell(row, view.names[row], { tag: "div" }), el("span", { class: same ? "bar-of" : "bars", role: "img", "aria-label": `attention ${percent(bars[0])}` }, heights), share, why);
  });
  return el("section", { class: "attention" }, el("h3", {}, "What it looked at"), el("p", { class: "quiet" }, says), el("ul", {}, lines));
}

const total = (looked, at) => looked.weights.reduce((sum, step) => sum + step[at], 0);
