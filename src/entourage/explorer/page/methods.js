// How the item in view is refined: as it was kept, or by another method, with sliders.

import { el } from "./dom.js";

const SAYS = {
  kept: "As this run refined it. Choose a method to try it on this item.",
  raw: "Not refined: vectors as they came.",
  "alpha-qe": "Query expansion: each item plus its nearest, weighed by similarity.",
  universal: "Neighbours are judged by the universal scorer, which needs no labels.",
  fitted: "Neighbours are judged by the refiner that learned from labels.",
};

/** What the state asks for: null for the run as it was kept. */
export function settingsOf(state, scene) {
  const tried = [state.k, state.steps, state.blend].some((value) => value !== undefined);
  const method = state.method ?? (tried ? scene.own : undefined);
  const known = method && scene.methods[method];
  return known ? chosen(method, known, state, scene) : null;
}

function chosen(method, known, state, scene) {
  const within = (value, low, high, usual) => (value === undefined ? usual : Math.max(low, Math.min(high, value)));
  return {
    method,
    k: Math.round(within(state.k, 1, scene.most.k, known.k)),
    steps: Math.round(within(state.steps, 0, scene.most.steps, known.steps)),
    blend: within(state.blend, 0, 1, known.blend),
  };
}

const AS_KEPT = { method: undefined, k: undefined, steps: undefined, blend: undefined };

/** The box with the switch and the sliders. */
export function methodBox(page) {
  const { scene } = page.data;
  const { value } = page.state;
  const own = scene.own ?? "kept";
  const name = settingsOf(value, scene)?.method ?? own;
  const now = scene.methods[name] && chosen(name, scene.methods[name], value, scene);
  const names = [...(scene.own ? [] : ["kept"]), ...Object.keys(scene.methods)];
  const buttons = names.map((each) => {
    const title = each === "kept" ? "This run" : scene.methods[each].title;
    const choose = () => page.state.set({ ...AS_KEPT, method: each === own ? undefined : each });
    return el("button", { type: "button", role: "radio", "aria-checked": String(each === name), title: SAYS[each], data: { method: each }, onclick: choose }, title);
  });
  const back = () => {
    page.panel.dataset.shown = ""; // made anew, with the sliders where they were
    page.state.set(AS_KEPT);
  };
  const sliders = now ? scene.methods[name].settings.map((each) => slider(page, each, now[each])) : [];
  const box = el(
    "section",
    { class: "method", "aria-label": "Method" },
    el("div", { class: "by" }, el("span", { class: "quiet" }, "Refined by"), el("div", { class: "modes", role: "radiogroup", "aria-label": "Refined by" }, buttons)),
    el("p", { class: "quiet" }, SAYS[name], " ", el("span", { class: "as-kept" }, "This is what the run did."), el("span", { class: "tried" }, "Tried on what is in view; the places on the map, and scores, stay those of the run. ", el("button", { type: "button", class: "small", id: "as-kept", onclick: back }, "Back to what the run did"))),
    sliders.length ? el("div", { class: "sliders" }, sliders) : null,
  );
  sayWhetherKept(page, box);
  return box;
}

function sayWhetherKept({ state, data }, box) {
  const kept = settingsOf(state.value, data.scene) === null;
  box.querySelector(".as-kept").hidden = !kept || !data.scene.own;
  box.querySelector(".tried").hidden = kept;
}

/** Let the box that is there say what the state now is, without touching a slider that is held. */
export function followSettings(page, panel) {
  const box = panel.querySelector(".method");
  if (!box) return;
  sayWhetherKept(page, box);
  const now = settingsOf(page.state.value, page.data.scene);
  for (const input of box.querySelectorAll("[data-setting]")) {
    if (!now || input === document.activeElement) continue;
    input.value = now[input.dataset.setting];
    input.parentElement.querySelector("output").textContent = said(input.dataset.setting, now[input.dataset.setting]);
  }
}

const said = (name, value) => (name === "blend" ? Number(value).toFixed(2) : String(value));

const TITLES = { k: "neighbours", steps: "steps", blend: "keeps of itself" };

function slider(page, name, value) {
  const { most } = page.data.scene;
  const [low, high, step] = { k: [1, most.k, 1], steps: [0, most.steps, 1], blend: [0, 1, 0.05] }[name];
  const shown = el("output", {}, said(name, value));
  const input = el("input", { type: "range", min: low, max: high, step, value, data: { setting: name }, "aria-label": TITLES[name] });
  input.addEventListener("input", () => {
    shown.textContent = said(name, input.value);
    page.state.set({ [name]: Number(input.value) }, { entry: false });
  });
  return el("label", {}, el("span", {}, TITLES[name]), input, shown);
}
