// What is said when nothing is chosen yet.

import { el, fill, number } from "./dom.js";

const SHOWN = 6;

/** Fill the panel with what the map shows and where to begin. */
export async function showWelcome(page, panel) {
  panel.dataset.shown = "welcome";
  const { scene } = page.data;
  const examples = el("div");
  fill(
    panel,
    el("div", { class: "bar" }, el("h2", {}, scene.name)),
    el("p", { class: "lead" }, `Each of the ${number(scene.points)} points is an item; similar items lie near each other. Refinement lets every item look at its neighbours and moves it: press ▶ to see it.`),
    el("ul", { class: "begin" },
      el("li", {}, el("b", {}, "Click"), " a point to see its neighbours before and after."),
      el("li", {}, el("b", {}, "Draw"), " around points to see what they have in common."),
      scene.columns.gain ? el("li", {}, el("b", {}, "Colour"), " by ", el("a", { href: page.addressOf({ colour: "gain" }) }, "gain or loss"), " to see who it helped.") : null,
      page.source.live ? el("li", {}, el("b", {}, "Drop"), " vectors, a picture or a text to search with it.") : null,
      el("li", {}, el("b", {}, "The "), el("a", { href: page.addressOf({ view: "set" }) }, "set"), " has scores, and labels to check."),
    ),
    examples,
  );
  if (!scene.columns.gain) return;
  const [, gains] = await page.data.column("gain");
  const [won, lost] = [farthest(gains, 1), farthest(gains, -1)];
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
