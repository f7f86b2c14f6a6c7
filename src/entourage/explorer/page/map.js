// The map: all points at a step, and what is marked among them.

import { Camera, steer } from "./camera.js";
import { labelStyle, palette } from "./colours.js";
import { byId } from "./dom.js";
import { Points } from "./gl.js";
import { Grid, placesAt } from "./grid.js";
import { Names } from "./names.js";
import { isDark } from "./theme.js";

const HIDDEN = 0;
const FAINT = 1;
const SHOWN = 2;
const NEAR = 14; // pixels from the pointer within which a point is meant

/** The map of a scene. `data` has scene, steps (places of each step), codes (labels) and column(name). */
export class MapView {
  constructor(data, events) {
    this.data = data;
    this.events = events;
    this.camera = new Camera();
    this.step = data.steps.length - 1;
    this.mode = "pan";
    this.focus = null; // {row, near: [{row, right}]}
    this.queries = []; // [{place, current}]
    this.selected = null; // Set of rows
    this.hovered = -1;
    this.pointed = -1;
    this.frames = 0;
    this.marks = byId("marks").getContext("2d");
    this.names = data.codes ? new Names(data.scene.labels, data.codes, data.steps) : null;
    this.shown = new Uint8Array(data.scene.points).fill(SHOWN);
    try {
      this.points = new Points(byId("points"));
      this.points.onrestored = () => this.#upload();
    } catch (error) {
      this.failed = error.message;
    }
    this.value = { mode: "label", range: [0, 1] };
    this.setTheme();
    this.#upload();
    steer(byId("points"), this.camera, {
      mode: () => this.mode,
      moved: () => this.#moved(),
      hover: (px, py) => this.#hover(px, py),
      click: (px, py) => this.#click(px, py),
      draw: (points, done) => this.#drawn(points, done),
    });
    new ResizeObserver(() => this.resize()).observe(byId("stage"));
    this.resize();
  }

  #upload() {
    if (!this.points) return;
    this.points.setPlaces(this.data.steps);
    this.points.setCodes(this.data.codes ?? new Int32Array(this.data.scene.points).fill(-1));
    this.points.setShown(this.shown);
    if (this.value.column) this.points.setValues(...this.value.column);
    this.redraw();
  }

  setTheme() {
    this.colours = palette(isDark());
    this.redraw();
  }

  resize() {
    const box = byId("stage").getBoundingClientRect();
    const ratio = Math.min(devicePixelRatio || 1, 2);
    for (const id of ["points", "marks"]) {
      byId(id).width = Math.max(1, Math.round(box.width * ratio));
      byId(id).height = Math.max(1, Math.round(box.height * ratio));
    }
    this.ratio = ratio;
    const [tools, timeline] = ["tools", "timeline"].map((id) => byId(id).getBoundingClientRect());
    this.camera.resize(box.width, box.height, Math.max(tools.bottom - box.top, 0), Math.max(box.bottom - timeline.top, 0));
    this.cover();
    this.redraw();
  }

  /** Note what covers the map, so that no name is written beneath. */
  cover() {
    const box = byId("stage").getBoundingClientRect();
    const rects = ["legend", "timeline", ...byId("tools").children].map((each) => (each.getBoundingClientRect ? each : byId(each)).getBoundingClientRect());
    this.covered = rects.filter((rect) => rect.width).map((rect) => [rect.left - box.left - 4, rect.top - box.top - 2, rect.right - box.left + 4, rect.bottom - box.top + 2]);
  }

  /** Colour by a column: mode "label", "signed" or "ramp", values before and after, and the range they are shown in. */
  setColour(mode, column, range) {
    this.value = { mode, column, range };
    if (column) this.points?.setValues(...column);
    this.redraw();
  }

  setStep(step) {
    this.step = Math.max(0, Math.min(this.data.steps.length - 1, step));
    this.grid = null;
    this.redraw();
  }

  /** Hide points: may(row) is true for those that stay. */
  filter(may) {
    this.drawn = 0; // how many are drawn, by which they are large or small
    for (let row = 0; row < this.shown.length; row++) this.drawn += (this.shown[row] = may(row) ? SHOWN : HIDDEN) / SHOWN;
    this.#filtered();
  }

  /** Of the points that are not hidden, draw those faint that are not meant. */
  fade(meant) {
    for (let row = 0; row < this.shown.length; row++) if (this.shown[row] === SHOWN && !meant(row)) this.shown[row] = FAINT;
    this.#filtered();
  }

  #filtered() {
    this.points?.setShown(this.shown);
    this.names?.setMeant((row) => this.shown[row] === SHOWN);
    this.redraw();
  }

  /** Mark an item and its neighbours; null for none. */
  setFocus(focus) {
    this.focus = focus;
    this.redraw();
  }

  setQueries(queries) {
    this.queries = queries;
    this.redraw();
  }

  place(row) {
    const last = this.data.steps.length - 1;
    const low = Math.min(Math.floor(this.step), Math.max(last - 1, 0));
    const [start, end] = [this.data.steps[low], this.data.steps[Math.min(low + 1, last)]];
    return [0, 1].map((axis) => start[2 * row + axis] + (this.step - low) * (end[2 * row + axis] - start[2 * row + axis]));
  }

  #places() {
    this.grid ??= new Grid(placesAt(this.data.steps, this.step));
    return this.grid;
  }

  /** The point under a place of the screen, or -1. */
  at(px, py) {
    const [x, y] = this.camera.toPlane(px, py);
    return this.#places().nearest(x, y, NEAR / this.camera.unit, (row) => this.shown[row] !== HIDDEN);
  }

  /** The point nearest to the middle of what is seen, or -1 if none is shown. */
  middle() {
    for (let radius = NEAR; ; radius *= 2) {
      const found = this.#places().nearest(this.camera.x, this.camera.y, radius / this.camera.unit, (row) => this.shown[row] !== HIDDEN);
      if (found >= 0 || radius > 10 * (this.camera.width + this.camera.height) * this.camera.zoom) return found;
    }
  }

  /** Bring a point into view, if it is not. */
  show(row) {
    const [px, py] = this.camera.toScreen(...this.place(row));
    const { width, height } = this.camera;
    const { top, bottom } = this.camera;
    if (px > 20 && py > top && px < width - 20 && py < height - bottom) return;
    [this.camera.x, this.camera.y] = this.place(row);
    this.#moved();
  }

  /** Points inside a polygon of the plane at a step. */
  inside(polygon, step = this.step) {
    const grid = step === this.step ? this.#places() : new Grid(placesAt(this.data.steps, step));
    return grid.inside(polygon, (row) => this.shown[row] !== HIDDEN);
  }

  /** Look at a point from so near that these others can be told from it. */
  closeUp(row, others) {
    [this.camera.x, this.camera.y] = this.place(row);
    const far = others.map((other) => Math.hypot(...this.place(other).map((value, axis) => value - this.place(row)[axis])));
    const most = far.sort((one, other) => one - other)[Math.floor(0.75 * far.length)] || 0.02;
    const { width, height, top, bottom, unit, zoom } = this.camera;
    this.camera.zoomAt((0.3 * Math.min(width, height - top - bottom)) / (most * unit));
    if (this.camera.zoom < zoom) this.camera.zoom = zoom;
    this.#moved();
  }

  /** Ring a point that is pointed at elsewhere, as in a list; -1 for none. */
  point(row) {
    this.pointed = row;
    this.redraw();
  }

  move(change) {
    change(this.camera);
    this.#moved();
  }

  #moved() {
    this.redraw();
    this.events.moved(this.camera);
  }

  #hover(px, py) {
    const row = px === null || px === undefined || this.events.playing() ? -1 : this.at(px, py);
    if (row === this.hovered) return;
    this.hovered = row;
    byId("points").style.cursor = row >= 0 ? "pointer" : this.mode === "pan" ? "grab" : "crosshair";
    this.redraw();
    this.events.hover(row, row >= 0 ? this.camera.toScreen(...this.place(row)) : null);
  }

  #click(px, py) {
    this.events.click(this.at(px, py));
  }

  #drawn(points, done) {
    this.lasso = done ? null : points;
    this.redraw();
    if (done) this.events.region(points.map((at) => this.camera.toPlane(...at)));
  }

  /** Draw at the next frame. */
  redraw() {
    this.wanted ??= requestAnimationFrame(() => {
      this.wanted = null;
      this.frames++;
      this.#drawPoints();
      this.#drawMarks();
    });
  }

  get size() {
    const crowd = (2000 / Math.max(this.drawn ?? this.data.scene.points, 800)) ** 0.36;
    const room = Math.max(0.65, Math.min(1, Math.min(this.camera.width, this.camera.height) / 640));
    const base = Math.max(1.5, 8.5 * crowd * room);
    return Math.min(18, base * this.camera.zoom ** 0.4) * this.ratio;
  }

  #drawPoints() {
    const { mode, range } = this.value;
    this.points?.draw({ camera: this.camera.clip, step: this.step, size: this.size, mode, range, colours: this.colours });
  }

  #drawMarks() {
    const context = this.marks;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.camera.width, this.camera.height);
    if (this.names) {
      const style = (code) => (this.value.mode === "label" ? labelStyle(this.colours, code).colour : this.colours.quiet);
      const covered = [...(this.covered ?? []), ...this.#marked()];
      const options = { style, paper: this.colours.paper, covered, size: this.size / this.ratio };
      this.named = this.names.draw(context, this.camera, this.step, options);
    }
    if (this.focus) this.#drawFocus(context);
    for (const row of [this.hovered, this.pointed]) if (row >= 0) this.#ring(context, this.camera.toScreen(...this.place(row)), 9, 2);
    for (const query of this.queries) this.#drawQuery(context, query);
    if (this.lasso) this.#drawLasso(context);
  }

  /** Boxes around what is marked. */
  #marked() {
    const rows = this.focus ? [this.focus.row, ...this.focus.near.map(({ row }) => row)] : [];
    return rows.map((row) => this.camera.toScreen(...this.place(row))).map(([x, y]) => [x - 9, y - 9, x + 9, y + 9]);
  }

  #ring(context, [x, y], radius, width) {
    for (const [colour, wide] of [[this.colours.paper, width + 2.5], [this.colours.accent, width]]) {
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.setLineDash([]);
      context.stroke();
    }
  }

  #drawFocus(context) {
    const from = this.camera.toScreen(...this.place(this.focus.row));
    for (const { row, right } of this.focus.near) {
      const to = this.camera.toScreen(...this.place(row));
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.strokeStyle = right === 0 ? this.colours.signed[0] : right === 1 ? this.colours.signed[2] : this.colours.ink;
      context.setLineDash(right === 0 ? [4, 4] : right === 1 ? [] : [1, 3]);
      context.lineWidth = 1.2;
      context.stroke();
    }
    for (const { row, right } of this.focus.near) this.#frame(context, this.camera.toScreen(...this.place(row)), right);
    context.setLineDash([]);
    this.#ring(context, from, 11, 3);
  }

  /** A small ring as the frame of a neighbour in the list: solid if right, dashed if wrong, dotted if not known. */
  #frame(context, [x, y], right) {
    context.beginPath();
    context.arc(x, y, Math.max(5, this.size / this.ratio), 0, 2 * Math.PI);
    context.strokeStyle = right === 0 ? this.colours.signed[0] : right === 1 ? this.colours.signed[2] : this.colours.ink;
    context.setLineDash(right === 0 ? [3, 2] : right === 1 ? [] : [1, 2]);
    context.lineWidth = 1.8;
    context.stroke();
  }

  #drawQuery(context, { place, current }) {
    const low = Math.min(Math.floor(this.step), place.length - 1);
    const high = Math.min(low + 1, place.length - 1);
    const at = [0, 1].map((axis) => place[low][axis] + (this.step - low) * (place[high][axis] - place[low][axis]));
    const [x, y] = this.camera.toScreen(...at);
    context.font = "700 22px system-ui";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 4;
    context.strokeStyle = this.colours.paper;
    context.strokeText("✚", x, y);
    context.fillStyle = current ? this.colours.accent : this.colours.signed[1];
    context.fillText("✚", x, y);
  }

  #drawLasso(context) {
    context.beginPath();
    this.lasso.forEach((at, number) => (number ? context.lineTo(...at) : context.moveTo(...at)));
    context.closePath();
    context.strokeStyle = this.colours.accent;
    context.setLineDash([5, 4]);
    context.lineWidth = 1.5;
    context.stroke();
    context.globalAlpha = 0.12;
    context.fillStyle = this.colours.accent;
    context.fill();
    context.globalAlpha = 1;
    context.setLineDash([]);
  }
}
