// Everything by keys.

import { byId, el, fill } from "./dom.js";

const KEYS = [
  ["/", "search"],
  ["space", "play, pause"],
  ["[ ]", "one step back, one on"],
  ["arrows", "move the map (when it has the focus)"],
  ["+ −", "zoom in, out"],
  ["0", "show all"],
  ["n p", "next, previous item near the middle of the map"],
  ["Enter", "open the item that is marked"],
  ["z", "zoom to the item that is open"],
  ["c", "next colouring"],
  ["w", "only what got worse"],
  ["m l b", "move, lasso, box"],
  ["s", "the set, or back to the map"],
  ["t", "light or dark"],
  ["Esc", "close what is open"],
  ["?", "these keys"],
];

/** Listen to keys; `act` has a function for each of them, `takes` says what can be dropped on the page. */
export function listenToKeys(act, takes) {
  const dialog = byId("keys");
  const close = el("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close() }, "×");
  const lines = KEYS.map(([key, says]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, says)]);
  const say = el("p", { class: "quiet" }, "Drag to move, scroll to zoom, hold Shift and drag to draw around items. " + (takes ? `Drop or paste ${takes} to search with it.` : ""));
  fill(dialog, el("div", { class: "bar" }, el("h2", {}, "Keys"), close), el("dl", {}, lines), say);
  const help = () => (dialog.open ? dialog.close() : dialog.showModal());
  byId("help").addEventListener("click", help);

  const single = { "/": act.search, "0": act.fit, "+": act.zoomIn, "=": act.zoomIn, "-": act.zoomOut, "[": act.back, "]": act.on, n: act.next, p: act.previous, c: act.colour, w: act.worse, m: act.pan, l: act.lasso, b: act.box, s: act.set, t: act.theme, z: act.closeUp, "?": help };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    const typing = event.target.closest?.("input:not([type=range]):not([type=checkbox]), textarea");
    if (typing) return;
    const onMap = event.target.id === "points";
    const inControl = event.target.closest?.("button, select, a, summary, input");
    if (event.key === "Escape") act.close();
    else if (event.key === " " && !inControl) act.play();
    else if (event.key === "Enter" && onMap) act.open();
    else if (onMap && event.key.startsWith("Arrow")) act.move(event.key.slice(5).toLowerCase());
    else if (single[event.key] && !(event.target.tagName === "SELECT")) single[event.key]();
    else return;
    event.preventDefault();
  });
}
