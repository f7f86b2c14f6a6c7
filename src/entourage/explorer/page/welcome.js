// What is said when nothing is chosen yet.

import { el, fill, number } from "./dom.js";
import { change, points } from "./set.js";

const SHOWN = 8;
const HEADLINE = { "recall@1": ["R@1", "the nearest has the same label"], "map@r": ["MAP@R", "mean average precision"] };

/** The two scores that say most, large. */
function cards(scores) {
  return scores.filter(({ name }) => HEADLINE[name]).map(({ name, before, after, interval }) => {
    const [title, says] = HEADLINE[name];
    const [sign, kind] = change(after - before, interval);
    const head = el("p", { class: "bar" }, el("span", { class: "quiet" }, title), el("span", { class: kind }, `${sign} ${points(after - before)}`));
    const shown = [el("span", { class: "quiet" }, `${(100 * before).toFixed(1)} →`), el("b", {}, (100 * after).toFixed(1))];
    return el("div", { class: "card", title: `${says}, in percent` }, head, el("p", {}, shown));
  });
}

/** Fill the panel with what the map shows and where to begin. */
export async function showWelcome(page, panel) {
  panel.dataset.shown = "welcome";
  const { scene } = page.data;
  const [headline, examples] = [el("div", { class: "cards" }), el("div", { class: "rest" })];
  fill(
    panel,
    el("div", { class: "bar" }, el("h2", {}, scene.name)),
    el("p", { class: "lead" }, `Each of the ${number(scene.points)} points is an item; similar items lie near each other. Refinement lets every item look at its neighbours and moves it: press ▶ to see it.`),
    headline,
    el("ul", { class: "begin" },
      el("li", {}, el("b", {}, "Click"), " a point to see its neighbours before and after."),
      el("li", {}, el("b", {}, "Draw"), " around points to see what they have in common."),
      scene.columns.gain ? el("li", {}, el("b", {}, "Colour"), " by ", el("a", { href: page.addressOf({ colour: "gain" }) }, "gain or loss"), " to see whom it helped.") : null,
      page.source.live ? el("li", {}, el("b", {}, "Drop"), scene.encoder ? ` ${scene.kind === "texts" ? "a text" : "a picture"} or vectors of your own to search with them.` : " a file of vectors to search with them.") : null,
      el("li", {}, el("b", {}, "Open"), " ", el("a", { href: page.addressOf({ view: "set" }) }, "the set"), scene.columns.gain ? " for scores, and labels to check." : scene.labels ? " for labels to check." : " for what the doctor says of the vectors."),
    ),
    examples,
  );
  if (!scene.columns.gain) return;
  fill(headline, cards((await page.source.overview()).scores));
  const [, gains] = await page.data.column("gain");
  const most = scene.kind === "pictures" ? SHOWN : SHOWN / 2;
  const [won, lost] = [farthest(gains, 1).slice(0, most), farthest(gains, -1).slice(0, most)];
  if (!won.length && !lost.length) return;
  const names = await page.source.names([...won, ...lost]);
  const list = (rows) => el("ul", { class: scene.kind === "pictures" ? "sample tiles" : "sample" }, rows.map((row) => page.cells.cell(row, names[row], { notes: [`${gains[row] > 0 ? "▲ +" : "▼ −"}${(100 * Math.abs(gains[row])).toFixed(0)} points`] })));
  fill(examples, won.length ? [el("h3", {}, "Biggest gains"), list(won)] : null, lost.length ? [el("h3", {}, "Biggest losses"), list(lost)] : null);
}

/** The rows of the largest values, or of the smallest if `way` is -1; few, found in one pass. */
function farthest(values, way) {
  const found = [];
  values.forEach((value, row) => {
    const far = way * value;
    if (!(far > 1e-9) || (found.length === SHOWN && far <= way * values[found[SHOWN - 1]])) return;
    found.push(row);
    found.sort((one, other) => way * (values[other] - values[one]) || one - other);
    found.length = Math.min(found.length, SHOWN);
  });
  return found;
}
