// What points drawn around have in common.

import { download, el, fill, number, percent } from "./dom.js";

const CLASSES = 12;
const SHOWN = 24;

/** Fill the panel with a selection, or with the items of a label: their classes, their gain, some of them. */
export async function showSelection(page, panel, rows, { closed, label }) {
  const { codes, scene } = page.data;
  panel.dataset.shown = "selection";
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: closed }, "×");
  const known = label !== undefined && scene.labels?.[label] !== undefined;
  const count = `${number(rows.length)} item${rows.length === 1 ? "" : "s"}`;
  const head = el("div", { class: "bar" }, el("h2", {}, known ? [page.cells.mark(label), " ", el("bdi", {}, scene.labels[label])] : count), close);
  if (!rows.length) {
    const said = label === undefined ? "There is no item inside. Draw around some points, or zoom in first." : "No item has this label.";
    fill(panel, head, el("p", { class: "quiet" }, said));
    return;
  }
  const save = async () => download("selection.csv", await page.source.ids(rows));
  const list = el("ul", { class: "sample" });
  fill(
    panel,
    head,
    el("p", { class: "by" }, known ? `${count} with this label` : null, el("button", { type: "button", class: "main", id: "save-selection", onclick: save }, "Export ids as CSV")),
    codes && !known ? classes(page, rows) : null,
    await values(page, rows),
    el("h3", {}, rows.length > SHOWN ? "Some of them" : "All of them"),
    list,
  );
  const some = rows.length > SHOWN ? Array.from({ length: SHOWN }, (_, at) => rows[Math.floor((at * rows.length) / SHOWN)]) : rows;
  const names = await page.source.names(some);
  fill(list, some.map((row) => page.cells.cell(row, names[row])));
  if (scene.kind === "pictures") list.classList.add("tiles");
}

function classes(page, rows) {
  const counts = new Map();
  for (const row of rows) counts.set(page.data.codes[row], (counts.get(page.data.codes[row]) ?? 0) + 1);
  const order = [...counts].sort((one, other) => other[1] - one[1]);
  const [code, count] = order[0];
  const name = el("bdi", {}, named(page, code));
  const said =
    order.length === 1
      ? ["All of them are ", name, "."]
      : [`They are of ${number(order.length)} classes; `, ...(order[1][1] === count ? ["no class is alone the largest."] : [name, ` is the largest, with ${percent(count / rows.length)} of them.`])];
  const lines = order.slice(0, CLASSES).map(([each, n]) =>
    el(
      "li",
      {},
      page.cells.mark(each),
      each < 0 ? named(page, each) : el("a", { href: page.addressOf({ label: each, item: undefined, region: undefined }) }, el("bdi", {}, named(page, each))),
      el("span", { class: "bar-of" }, el("i", { style: { width: `${(100 * n) / count}%` } })),
      el("span", { class: "count" }, number(n)),
    ),
  );
  const more = order.length > CLASSES ? el("p", { class: "quiet" }, `and ${number(order.length - CLASSES)} more`) : null;
  return el("section", { class: "classes" }, el("h3", {}, "What they have in common"), el("p", {}, said), el("ul", {}, lines), more);
}

const named = (page, code) => (code < 0 ? "without label" : page.data.scene.labels[code]);

async function values(page, rows) {
  const { scene } = page.data;
  const lines = await Promise.all(
    Object.entries(scene.columns).map(async ([name, column]) => {
      const [before, after] = await page.data.column(name);
      const [own, all] = [mean(after, rows), mean(after, null)];
      if (own === null) return null;
      const was = column.signed ? null : mean(before, rows);
      const moved = was !== null && Math.abs(was - own) > 1e-6 ? `${show(column, was)} → ` : "";
      return el("tr", {}, el("th", { scope: "row", title: column.says }, column.title), el("td", {}, `${moved}${show(column, own)}`), el("td", { class: "quiet" }, show(column, all)));
    }),
  );
  return el(
    "table",
    { class: "values" },
    el("thead", {}, el("tr", {}, el("th", {}, "Mean"), el("th", { scope: "col" }, "here"), el("th", { scope: "col" }, "all"))),
    el("tbody", {}, lines.filter(Boolean)),
  );
}

const show = (column, value) =>
  column.signed ? `${value > 0 ? "▲ +" : value < 0 ? "▼ −" : ""}${(100 * Math.abs(value)).toFixed(1)} points` : value.toFixed(column.high > 2 ? 1 : 2);

function mean(values, rows) {
  let [sum, count] = [0, 0];
  const add = (value) => {
    if (!Number.isNaN(value)) {
      sum += value;
      count++;
    }
  };
  if (rows) for (const row of rows) add(values[row]);
  else for (const value of values) add(value);
  return count ? sum / count : null;
}
