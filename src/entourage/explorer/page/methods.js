// How the item in view is refined: as it was kept, or by another method, with sliders.

import { el } from "./dom.js";

const SAYS = {
  kept: "What this run did. Choose another method to try it on this item.",
  raw: "Nothing: vectors as they came.",
  "alpha-qe": "Query expansion: each item plus its nearest, weighed by similarity.",
  universal: "Neighbours are judged by the universal scorer, which needs no labels.",
  fitted: "Neighbours are judged by the refiner of this run.",
};

/** What the state asks for: null for the run as it was kept. */
export function settingsOf(state, scene) {
  const { method } = state;
  const known = method && scene.methods[method];
  if (!known) return null;
  const within = (value, low, high, usual) => (value === undefined ? usual : Math.max(low, Math.min(high, value)));
  return {
    method,
    k: Math.round(within(state.k, 1, scene.most.k, known.k)),
    steps: Math.round(within(state.steps, 0, scene.most.steps, known.steps)),
    blend: within(state.blend, 0, 1, known.blend),
  };
}

/** The box with the switch and the sliders. */
export function methodBox(page) {
  const { scene } = page.data;
  const now = settingsOf(page.state.value, scene);
  const names = ["kept", ...Object.keys(scene.methods)];
  const choose = (name) => page.state.set({ method: name === "kept" ? undefined : name, k: undefined, steps: undefined, blend: undefined });
  const buttons = names.map((name) => {
    const on = (now?.method ?? "kept") === name;
    const title = name === "kept" ? "This run" : scene.methods[name].title;
    return el("button", { type: "button", role: "radio", "aria-checked": String(on), title: SAYS[name], data: { method: name }, onclick: () => choose(name) }, title);
  });
  const sliders = now
    ? scene.methods[now.method].settings.map((name) => slider(page, name, now[name]))
    : [];
  return el(
    "section",
    { class: "method", "aria-label": "Method" },
    el("div", { class: "by" }, el("span", { class: "quiet" }, "Refined by"), el("div", { class: "modes", role: "radiogroup", "aria-label": "Refined by" }, buttons)),
    el("p", { class: "quiet" }, SAYS[now?.method ?? "kept"]),
    sliders.length ? el("div", { class: "sliders" }, sliders) : null,
  );
}

const TITLES = { k: "neighbours", steps: "steps", blend: "keeps of itself" };

function slider(page, name, value) {
  const { most } = page.data.scene;
  const [low, high, step] = { k: [1, most.k, 1], steps: [0, most.steps, 1], blend: [0, 1, 0.05] }[name];
  const shown = el("output", {}, name === "blend" ? value.toFixed(2) : String(value));
  const input = el("input", { type: "range", min: low, max: high, step, value, data: { setting: name }, "aria-label": TITLES[name] });
  input.addEventListener("input", () => {
    shown.textContent = name === "blend" ? Number(input.value).toFixed(2) : input.value;
    page.state.set({ [name]: Number(input.value) }, { entry: false });
  });
  return el("label", {}, el("span", {}, TITLES[name]), input, shown);
}
