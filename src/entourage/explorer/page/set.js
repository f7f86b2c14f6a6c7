// The whole set: scores with intervals, classes, the doctor's verdict, labels to check.

import { download, el, fill, number, percent, sentence } from "./dom.js";

const NAMES = { "map@r": "MAP@R", mrr: "MRR", "r-precision": "R-precision", nmi: "NMI" };
const titled = (name) => NAMES[name] ?? name.replace("recall@", "R@").replace("precision@", "P@").replace("ndcg@", "nDCG@").replace("map@", "MAP@").replace("mrr@", "MRR@");

/** Fill the panel with the set; its slow parts come as they are ready. */
export async function showSet(page, panel, { closed }) {
  panel.dataset.shown = "set";
  const { scene } = page.data;
  const [doctor, labels] = [waiting("The doctor is looking at the vectors…"), waiting("Looking for labels to check…")];
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: closed }, "×");
  const top = el("div", { class: "top" });
  fill(panel, el("div", { class: "bar" }, el("h2", {}, "The set"), close), el("p", { class: "quiet" }, about(scene)), top, el("h3", {}, "What the doctor says of the raw vectors"), doctor, el("h3", {}, "Labels to check"), labels);
  const found = await page.source.overview();
  fill(top, scores(found, scene), tally(found, page), classes(page, found), notes(found));
  await Promise.all([later(doctor, async () => verdict(await page.source.doctor())), later(labels, async () => suspects(page, await page.source.suspects()))]);
}

const waiting = (text) => el("div", { class: "waiting", "aria-busy": "true" }, el("p", { class: "quiet" }, text));

async function later(place, make) {
  try {
    fill(place, await make());
  } catch (error) {
    fill(place, el("p", { class: "error" }, error.message));
  }
  place.removeAttribute("aria-busy");
}

function about(scene) {
  const gallery = scene.points > scene.items ? ` and ${number(scene.points - scene.items)} of a gallery` : "";
  const classes = scene.labels ? `, ${number(scene.labels.length)} labels` : ", no labels";
  return `${number(scene.items)} items${gallery}${classes}, ${number(scene.dim)} dimensions, ${scene.steps} steps.`;
}

function scores({ scores }, { labels }) {
  if (!scores.length) return el("p", {}, `${labels ? "There are no scores" : "There are no labels to score by"}; colour by trust or hubness, or look at single items.`);
  const lines = scores.map(({ name, before, after, interval }) => {
    const [mark, says] = change(after - before, interval);
    const range = interval ? `${points(interval.low)} to ${points(interval.high)}` : "";
    return el("tr", { data: { metric: name } }, el("th", { scope: "row" }, titled(name)), el("td", {}, (100 * before).toFixed(1)), el("td", {}, (100 * after).toFixed(1)), el("td", { class: says, title: says }, `${mark} ${points(after - before)}`), el("td", { class: "quiet" }, range));
  });
  const heads = ["", "before", "after", "change", "95 % interval"];
  return [
    el("h3", {}, "Scores"),
    el("table", { class: "scores" }, el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, lines)),
    el("p", { class: "quiet" }, "In percent. ▲ better and ▼ worse at 95 %; ≈ no clear change; △ ▽ without an interval."),
  ];
}

/** Whether a score rose: ▲ or ▼ beyond its interval, ≈ within it; △ or ▽ where there is none. */
export function change(difference, interval) {
  if (!interval) return difference > 0 ? ["△", "gain"] : difference < 0 ? ["▽", "loss"] : ["≈", "level"];
  if (interval.low > 1e-9) return ["▲", "gain"];
  if (interval.high < -1e-9) return ["▼", "loss"];
  return ["≈", "level"];
}

/** A difference in points, with its sign. */
export const points = (value) => `${value < 0 ? "−" : "+"}${(100 * Math.abs(value)).toFixed(1)}`;

function tally({ tally }, page) {
  if (!tally) return null;
  const all = Math.max(tally.better + tally.worse + tally.same, 1);
  const part = (name, count, text) => el("span", { class: name, style: { "flex-grow": Math.max(count / all, 0.001) }, title: text });
  const show = el("a", { href: page.addressOf({ view: undefined, worse: true, colour: "gain" }) }, `${number(tally.worse)} got worse`);
  return [
    el("h3", {}, "Rankings of items"),
    el("div", { class: "stack", "aria-hidden": "true" }, part("gain", tally.better, "better"), part("level", tally.same, "same"), part("loss", tally.worse, "worse")),
    el("p", {}, `▲ ${number(tally.better)} got better · = ${number(tally.same)} unchanged · ▼ `, show),
  ];
}

function classes(page, { classes }) {
  if (!classes.length) return null;
  const lines = classes.map(({ label, items, before, after }) => {
    const up = after > before;
    const link = el("a", { href: page.addressOf({ label, view: undefined, item: undefined }) }, el("bdi", {}, page.data.scene.labels[label]));
    return el("tr", {}, el("th", { scope: "row" }, page.cells.mark(label), " ", link), el("td", {}, number(items)), el("td", {}, percent(before)), el("td", {}, percent(after)), el("td", { class: up ? "gain" : "loss" }, `${up ? "▲" : "▼"} ${points(after - before)}`));
  });
  const heads = ["Label", "items", "before", "after", "change"];
  return [el("h3", {}, "Classes that gained and lost most"), el("table", { class: "class-scores" }, el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))), el("tbody", {}, lines)), el("p", { class: "quiet" }, "Mean average precision of a class's items.")];
}

function notes({ warnings }) {
  return warnings.map((text) => el("p", { class: "warning" }, `⚠ ${text}`));
}

function verdict({ verdict, findings }) {
  const lines = findings.map(({ name, value, note }) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value), el("td", { class: "quiet" }, note)));
  return [el("p", { class: "verdict" }, sentence(verdict.replace(/ Next: .*$/, ""))), lines.length ? el("details", {}, el("summary", {}, `${findings.length} findings`), el("table", { class: "findings" }, el("tbody", {}, lines))) : null];
}

function suspects(page, { suspects, all, copies, names }) {
  if (!page.data.codes) return el("p", { class: "quiet" }, "Without labels there is nothing to check.");
  const label = (code) => page.data.scene.labels[code];
  const save = (name, file) => async () => download(file, await page.source.csv(name));
  const found = suspects.map(({ row, suggested, share, near }) =>
    el(
      "li",
      {},
      page.cells.cell(row, names[row], { tag: "div", notes: [["neighbours say ", el("bdi", {}, label(suggested)), ` (${Math.round(100 * share)} %)`]] }),
      el("span", { class: "near", "aria-label": "its trusted neighbours" }, near.map((each) => page.cells.cell(each, names[each], { tag: "span" }))),
    ),
  );
  const pairs = copies.map(([one, other]) => el("li", { class: "pair" }, page.cells.cell(one, names[one], { tag: "div" }), page.cells.cell(other, names[other], { tag: "div" })));
  return [
    found.length
      ? [el("div", { class: "bar" }, el("p", {}, `${number(all)} item${all === 1 ? "" : "s"} whose trusted neighbours agree on another label${all > found.length ? `; the ${number(found.length)} surest are listed` : ""}.`), el("button", { type: "button", id: "save-suspects", onclick: save("suspects", "suspected-label-errors.csv") }, "Export as CSV")), el("ol", { class: "suspects" }, found)]
      : el("p", {}, "No label stands out as wrong."),
    pairs.length
      ? [el("div", { class: "bar" }, el("p", {}, `${number(copies.length)} pair${copies.length === 1 ? "" : "s"} of near-copies with different labels.`), el("button", { type: "button", id: "save-copies", onclick: save("copies", "copies-across-labels.csv") }, "Export as CSV")), el("ul", { class: "copies" }, pairs)]
      : el("p", { class: "quiet" }, "There are no near-copies with different labels."),
  ];
}
