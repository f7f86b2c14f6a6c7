// The page: loads a scene, shows it, and keeps what is shown and the address in step.

import { Cells } from "./cells.js";
import { byId, el, fill, sentence, toast } from "./dom.js";
import { embedded } from "./embedded.js";
import { showItem } from "./item.js";
import { listenToKeys } from "./keys.js";
import { showLegend } from "./legend.js";
import { takeDrops, takes } from "./live.js";
import { MapView } from "./map.js";
import { settingsOf } from "./methods.js";
import { Timeline } from "./play.js";
import { searchBox } from "./search.js";
import { showSelection } from "./selection.js";
import { showSet } from "./set.js";
import { server } from "./source.js";
import { State, write } from "./state.js";
import { isDark, onSystem, setTheme } from "./theme.js";
import { showWelcome } from "./welcome.js";

const panel = byId("panel");
const state = new State();
const page = {
  state,
  panel,
  source: embedded() ?? server,
  addressOf: (changes) => write({ ...state.value, ...changes }),
  failed: (error) => toast(error.message),
  busy: (on) => document.body.classList.toggle("busy", on),
  queries: null, // what was dropped, with the number of the one in view
};
let shown = 0; // what the panel was last asked to show; an answer that comes late is not shown

setTheme(state.value.theme);
start().catch((error) => fill(byId("cover"), el("div", { class: "error" }, el("p", {}, sentence(error.message)))));

async function start() {
  const scene = await ready();
  byId("stage-name").textContent = `Loading ${scene.points.toLocaleString("en")} points…`;
  byId("left").textContent = "";
  byId("progress").removeAttribute("value");
  const [places, codes] = await Promise.all([page.source.places(), scene.labels ? page.source.labels() : null]);
  const columns = new Map();
  page.data = {
    scene,
    codes,
    steps: Array.from({ length: scene.steps + 1 }, (_, step) => places.subarray(2 * step * scene.points, 2 * (step + 1) * scene.points)),
    column(name) {
      if (!columns.has(name)) columns.set(name, page.source.column(name).then((both) => [both.subarray(0, scene.points), both.subarray(scene.points)]));
      return columns.get(name);
    },
  };
  document.title = `${scene.name} · Entourage`;
  byId("title").textContent = scene.name;
  document.body.dataset.kind = scene.kind;
  wire();
  byId("cover").hidden = true;
  apply(state.value, new Set(["colour", "t", "x", "item", "worse", "view", "ask"]));
  document.body.dataset.ready = "yes";
  performance.mark("ready");
}

/** The scene, once it is there; until then how far it is. */
async function ready() {
  for (;;) {
    const { ready: done, stage, done: parts, total, left, error } = await page.source.progress();
    if (error) throw new Error(error);
    if (done) return page.source.scene();
    byId("stage-name").textContent = `${stage[0].toUpperCase()}${stage.slice(1)}…`;
    if (parts && total) byId("progress").value = parts / total;
    else byId("progress").removeAttribute("value"); // at work, nobody knows how long
    byId("left").textContent = left ? `about ${left} left` : "";
    await new Promise((resume) => setTimeout(resume, 300));
  }
}

function wire() {
  const { scene } = page.data;
  page.cells = new Cells(page);
  page.map = new MapView(page.data, {
    moved: debounced(({ x, y, zoom }) => state.set({ x, y, zoom }, { entry: false })),
    hover: showHover,
    click: (row) => (row >= 0 ? state.set({ item: row, view: undefined }) : close()),
    region: (polygon) => state.set({ region: packed(polygon, page.map.step), item: undefined, label: undefined, view: undefined }),
    playing: () => page.timeline.playing,
  });
  if (page.map.failed) toast(page.map.failed);
  page.timeline = new Timeline(scene.steps, (step, done) => {
    page.map.setStep(step);
    if (done) state.set({ t: step }, { entry: false });
  });
  const offered = [["label", "label"], ...Object.entries(scene.columns).map(([name, { title }]) => [name, title.toLowerCase()])];
  fill(byId("colour"), offered.filter(([name]) => name !== "label" || scene.labels).map(([name, title]) => el("option", { value: name }, title)));
  byId("colour").addEventListener("change", () => state.set({ colour: byId("colour").value }));
  byId("worse").addEventListener("change", () => state.set({ worse: byId("worse").checked }));
  byId("worse-box").hidden = !scene.columns.gain;
  byId("ask").hidden = !page.source.live;
  for (const button of document.querySelectorAll("[data-mode]")) button.addEventListener("click", () => setMode(button.dataset.mode));
  setMode("pan");
  const act = actions();
  for (const [id, does] of Object.entries({ in: act.zoomIn, out: act.zoomOut, fit: act.fit, theme: act.theme, "to-set": () => state.set({ view: "set" }), "to-map": () => state.set({ view: undefined }) })) byId(id).addEventListener("click", does);
  listenToKeys(act, page.source.live ? takes(scene) : "");
  searchBox(page, (found) => found.text !== undefined ? page.drops.ask(found.text) : state.set({ view: undefined, region: undefined, item: undefined, label: undefined, ask: undefined, ...found }));
  page.drops = takeDrops(page, (answer, ask) => {
    page.queries = { ...answer, ask, at: 0 };
    if (!ask || ask !== state.value.ask) state.set({ item: undefined, view: undefined, region: undefined, label: undefined, ask });
    showPanel();
  });
  page.closeUp = act.closeUp;
  for (const [event, on] of [["pointerover", true], ["focusin", true], ["pointerout", false], ["focusout", false]]) {
    panel.addEventListener(event, ({ target }) => page.map.point(on ? Number(target.closest("a[data-row]")?.dataset.row ?? -1) : -1));
  }
  onSystem(themed);
  state.listen(apply);
  Object.assign(globalThis, { entourage: page }); // for whoever looks under the hood, and for tests
}

function themed() {
  page.map.setTheme();
  byId("theme").textContent = isDark() ? "☀" : "☾";
  showLegend(page, colouring());
  page.map.cover();
  page.map.redraw();
}

const colouring = () => {
  const { scene } = page.data;
  const { colour } = state.value;
  return colour && (scene.columns[colour] || (colour === "label" && scene.labels)) ? colour : scene.labels ? "label" : Object.keys(scene.columns)[0];
};

function apply(value, changed) {
  const any = (...names) => names.some((name) => changed.has(name));
  if (any("theme")) setTheme(value.theme);
  if (any("theme", "colour")) colour().then(themed);
  if (any("t")) {
    page.timeline.show(value.t ?? page.data.scene.steps);
    page.map.setStep(page.timeline.step);
  }
  if (any("x", "y", "zoom") && value.zoom) {
    Object.assign(page.map.camera, { x: value.x ?? 0, y: value.y ?? 0, zoom: value.zoom });
    page.map.redraw();
  }
  if (any("worse", "label", "region", "colour")) filter(value);
  if (any("ask") && page.source.live) {
    if (!value.ask && page.queries?.ask) page.queries = page.drops.forget();
    if (value.ask && value.ask !== page.queries?.ask) page.drops.ask(value.ask);
  }
  if (any("item", "view", "label", "region", "ask", "method", "k", "steps", "blend")) {
    if (any("item", "view", "label", "region")) panel.scrollTop = 0;
    if (any("method", "k", "steps", "blend") && page.queries && value.item === undefined) page.drops.again();
    else showPanel();
  }
}

async function colour() {
  const name = colouring();
  byId("colour").value = name;
  if (name === "label") return page.map.setColour("label", null, [0, 1]);
  const { signed, low, high } = page.data.scene.columns[name];
  const column = await page.data.column(name);
  page.map.setColour(signed ? "signed" : "ramp", column, signed ? [0, Math.max(Math.abs(low), Math.abs(high), 1e-6)] : [low, high]);
}

/** Points that are meant are drawn as they are, the others faint; hidden, if only what got worse is wanted. */
async function filter({ worse, label, region }) {
  byId("worse").checked = Boolean(worse);
  const { codes, scene } = page.data;
  const gains = worse && scene.columns.gain ? (await page.data.column("gain"))[1] : null;
  page.map.only = codes && label !== undefined && scene.labels[label] !== undefined ? label : undefined;
  page.map.filter((row) => !gains || gains[row] < -1e-9);
  fill(byId("worse-count"), gains ? ` ${page.map.drawn.toLocaleString("en")}` : "");
  page.selected = region ? selectedIn(region) : null;
  if (region) {
    const chosen = new Uint8Array(scene.points);
    for (const row of page.selected) chosen[row] = 1;
    page.map.fade((row) => chosen[row]);
  } else if (page.map.only !== undefined) page.map.fade((row) => codes[row] === label);
  page.map.cover();
  if (region && state.value.item === undefined && !state.value.view) showPanel();
}

async function showPanel() {
  const number = ++shown;
  const { value } = state;
  const current = () => number === shown;
  document.body.dataset.view = value.view === "set" ? "set" : "map";
  byId("to-set").setAttribute("aria-pressed", String(value.view === "set"));
  byId("to-map").setAttribute("aria-pressed", String(value.view !== "set"));
  page.map.setFocus(null);
  page.map.setQueries([]);
  try {
    if (value.view === "set") await showSet(page, panel, { closed: () => state.set({ view: undefined }) });
    else if (value.item !== undefined) await openItem(value, current);
    else if (value.region) await showSelection(page, panel, page.selected ?? selectedIn(value.region), { closed: close });
    else if (value.label !== undefined) await showSelection(page, panel, membersOf(value.label), { closed: close, label: value.label });
    else if (page.queries) openQuery();
    else await showWelcome(page, panel);
  } catch (error) {
    if (current()) showError(error);
  }
}

function showError({ message }) {
  panel.dataset.shown = "error";
  const [again, leave] = [["Try again", showPanel], ["Back to the map", () => state.set({ view: undefined, item: undefined, region: undefined, label: undefined, ask: undefined })]].map(([text, onclick]) => el("button", { type: "button", onclick }, text));
  fill(panel, el("p", { class: "error" }, sentence(message)), el("p", { class: "by" }, leave, again));
}

const membersOf = (label) => (page.data.codes ? Array.from(page.data.codes.keys()).filter((row) => page.data.codes[row] === label) : []);

async function openItem(value, current) {
  const settings = page.source.live ? settingsOf(value, page.data.scene) : null;
  if (!panel.dataset.shown?.startsWith("Item ")) page.busy(true);
  const view = await page.source.item(value.item, settings).finally(() => page.busy(false));
  if (!current()) return;
  showItem(page, panel, view, { title: `Item ${view.names[view.row].id}`, closed: close });
  page.map.setFocus({ row: view.row, near: view.after.rows.map((row, at) => ({ row, right: view.after.right[at] })) });
  page.map.show(view.row);
}

function openQuery() {
  const { queries, at } = page.queries;
  const view = queries[at];
  showItem(page, panel, view, { title: queries.length > 1 ? `Query ${at + 1} of ${queries.length}` : "Query", closed: close, query: true });
  if (queries.length > 1) {
    const pick = queries.map((each, number) => el("option", { value: number, selected: number === at }, each.name));
    const select = el("select", { "aria-label": "Query", onchange: () => { page.queries.at = Number(select.value); showPanel(); } }, pick);
    panel.querySelector(".bar").after(select);
  }
  page.map.setQueries(queries.map((each, number) => ({ place: each.place, current: number === at })));
}

function close() {
  if (state.value.view || state.value.item !== undefined) return state.set({ view: undefined, item: undefined });
  page.queries = page.drops.forget();
  const plain = [state.value.region, state.value.label, state.value.ask].every((value) => value === undefined);
  return plain ? showPanel() : state.set({ region: undefined, label: undefined, ask: undefined });
}

const showHover = (() => {
  let timer = 0;
  return (row, at) => {
    const box = byId("hover");
    clearTimeout(timer);
    box.hidden = true;
    box.dataset.row = row;
    if (row < 0 || page.timeline.playing) return;
    timer = setTimeout(async () => {
      const names = await page.source.names([row]).catch(() => ({}));
      if (page.map.hovered !== row || !names[row]) return;
      const name = colouring();
      const column = name === "label" ? null : page.data.scene.columns[name];
      const values = column && (await page.data.column(name));
      const share = page.map.step / Math.max(page.data.scene.steps, 1);
      const now = values && values[0][row] + share * (values[1][row] - values[0][row]);
      const note = column && !Number.isNaN(now) ? [`${column.title}: ${column.signed ? `${now > 0 ? "+" : ""}${(100 * now).toFixed(1)} points` : now.toFixed(2)}`] : [];
      fill(box, page.cells.cell(row, names[row], { tag: "div", notes: [names[row].id, ...note] }));
      const [x, y] = at;
      box.style.left = `${Math.min(Math.max(x + 16, 4), page.map.camera.width - 246)}px`;
      box.style.top = `${Math.min(Math.max(y - 20, 4), page.map.camera.height - 150)}px`;
      box.hidden = false;
    }, 50);
  };
})();

function setMode(mode) {
  page.map.mode = mode;
  for (const button of document.querySelectorAll("[data-mode]")) button.setAttribute("aria-checked", String(button.dataset.mode === mode));
  byId("points").style.cursor = mode === "pan" ? "grab" : "crosshair";
}

/** What keys and buttons do. */
function actions() {
  const { map, timeline } = page;
  const walk = (by) => {
    const count = page.data.scene.points;
    let row = map.hovered < 0 ? map.middle() : map.hovered;
    if (row < 0) return;
    if (map.hovered >= 0) do row = (row + by + count) % count; while (by && !map.shown[row]);
    map.hovered = row;
    map.show(row);
    map.redraw();
    showHover(map.hovered, map.camera.toScreen(...map.place(map.hovered)));
  };
  const colours = () => [...byId("colour").options].map((option) => option.value);
  const move = { left: [60, 0], right: [-60, 0], up: [0, 60], down: [0, -60] };
  return {
    search: () => byId("search").focus(),
    play: () => timeline.toggle(),
    back: () => timeline.go(Math.ceil(timeline.step) - 1),
    on: () => timeline.go(Math.floor(timeline.step) + 1),
    zoomIn: () => map.move((camera) => camera.zoomAt(1.4)),
    zoomOut: () => map.move((camera) => camera.zoomAt(1 / 1.4)),
    fit: () => map.move((camera) => camera.fit()),
    move: (way) => map.move((camera) => camera.pan(...move[way])),
    next: () => walk(1),
    previous: () => walk(-1),
    closeUp: () => map.focus && map.closeUp(map.focus.row, map.focus.near.map(({ row }) => row)),
    open: () => (map.hovered >= 0 ? state.set({ item: map.hovered, view: undefined }) : walk(0)),
    colour: () => state.set({ colour: colours()[(colours().indexOf(colouring()) + 1) % colours().length] }),
    worse: () => page.data.scene.columns.gain && state.set({ worse: !state.value.worse }),
    pan: () => setMode("pan"),
    lasso: () => setMode("lasso"),
    box: () => setMode("box"),
    set: () => state.set({ view: state.value.view === "set" ? undefined : "set" }),
    theme: () => state.set({ theme: isDark() ? "light" : "dark" }, { entry: false }),
    close,
  };
}

function debounced(call, wait = 250) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...given), wait);
  };
}

/** A polygon and the step it was drawn at as text for the address, of at most 60 corners. */
function packed(polygon, step) {
  const every = Math.max(1, Math.ceil(polygon.length / 60));
  const corners = polygon.filter((_, at) => at % every === 0).map((at) => at.map((value) => value.toFixed(4)).join("_"));
  return [Number(step.toFixed(2)), ...corners].join("~");
}

/** The points inside a polygon as the address has it: at the step it was drawn at, wherever the slider is now. */
function selectedIn(text) {
  const parts = text.split("~").map((at) => at.split("_").map(Number)).filter((at) => at.every(isFinite));
  const [[step] = [page.map.step]] = parts.filter((at) => at.length === 1);
  return page.map.inside(parts.filter((at) => at.length === 2), Math.max(0, Math.min(page.data.scene.steps, step)));
}
