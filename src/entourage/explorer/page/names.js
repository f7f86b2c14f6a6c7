// Names of labels on the map: beside their points, none over another, more of them as one looks closer.

const MOST = 90;
const ROOM = 15000; // pixels for each name where all of the map is seen; less as one looks closer
const SAMPLE = 200;
const FONT = "600 11.5px system-ui, sans-serif";
const HIGH = 15;
const SMALL = 46; // pixels: a cloud of points up to this large is named beside it, a larger one amid it

/** The place of each label at each step: of its points, the one nearest to their median. */
export class Names {
  constructor(labels, codes, steps) {
    Object.assign(this, { labels, codes, steps, widths: new Map() });
    this.setMeant(() => true);
  }

  /** Which points are meant: a name stands where those of its label are, and is left out where there are none. */
  setMeant(meant) {
    this.members = this.labels.map(() => []);
    this.codes.forEach((code, row) => code >= 0 && meant(row) && this.members[code].push(row));
    this.order = this.labels.map((_, code) => code).filter((code) => this.members[code].length);
    this.order.sort((one, other) => this.members[other].length - this.members[one].length || one - other);
    this.kept = new Map();
  }

  #middles(step) {
    if (!this.kept.has(step)) this.kept.set(step, this.labels.map((_, code) => middle(this.members[code], this.steps[step])));
    return this.kept.get(step);
  }

  /** Where a label is at a step that may lie between two, and how far most of its points are from there: [x, y, far]. */
  place(code, step) {
    const low = Math.min(Math.floor(step), this.steps.length - 1);
    const high = Math.min(low + 1, this.steps.length - 1);
    const [start, end] = [this.#middles(low)[code], this.#middles(high)[code]];
    return start.map((value, at) => value + (step - low) * (end[at] - value));
  }

  /**
   * Draw those that fit, of labels whose middle is seen. `covered`: boxes where nothing is to be drawn; `size`: of a
   * point.
   */
  draw(context, camera, step, { style, paper, covered, size }) {
    const taken = [...covered];
    const drawn = [];
    const boxes = [];
    const most = Math.min(MOST, Math.max(8, (camera.zoom * camera.width * camera.height) / ROOM));
    Object.assign(context, { font: FONT, textAlign: "center", textBaseline: "middle", lineJoin: "round", strokeStyle: paper, lineWidth: 3.5 });
    for (const code of this.order) {
      if (drawn.length >= most) break;
      if (!seen(this.place(code, step), camera)) continue;
      const box = this.#boxes(context, camera, code, step, size).find((each) => inside(each, camera) && !taken.some((other) => overlaps(each, other)));
      if (!box) continue;
      taken.push(box);
      boxes.push(box);
      drawn.push(code);
      const [x, y] = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2];
      context.globalAlpha = 0.85;
      context.strokeText(this.#short(code), x, y);
      context.globalAlpha = 1;
      context.fillStyle = style(code);
      context.fillText(this.#short(code), x, y);
    }
    return { drawn, boxes };
  }

  /** Where a name may stand, the best place first: above, below or beside its points, amid them where they are many. */
  #boxes(context, camera, code, step, size) {
    const [x, y, far] = this.place(code, step);
    const [px, py] = camera.toScreen(x, y);
    const [wide, away] = [this.#width(context, code) / 2 + 3, far * camera.unit + size / 2 + HIGH / 2 + 1];
    const at = (cx, cy) => [cx - wide, cy - HIGH / 2, cx + wide, cy + HIGH / 2];
    const around = (off) => [at(px, py - off), at(px, py + off), at(px + off + wide - HIGH / 2, py), at(px - off - wide + HIGH / 2, py)];
    return away > SMALL ? [at(px, py), ...around(size / 2 + HIGH / 2 + 1)] : around(away);
  }

  #short(code) {
    const name = this.labels[code];
    return name.length > 26 ? `${name.slice(0, 25)}…` : name;
  }

  #width(context, code) {
    if (!this.widths.has(code)) this.widths.set(code, context.measureText(this.#short(code)).width);
    return this.widths.get(code);
  }
}

function seen([x, y], camera) {
  const [px, py] = camera.toScreen(x, y);
  return px >= 0 && py >= 0 && px <= camera.width && py <= camera.height;
}

const inside = (box, { width, height }) => box[0] >= 2 && box[1] >= 2 && box[2] <= width - 2 && box[3] <= height - 2;

const overlaps = (one, other) =>
  one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

/** The point amid some, and the distance from it within which three quarters of them are. Of many, some tell. */
function middle(all, places) {
  if (!all.length) return [0, 0, 0];
  const every = Math.ceil(all.length / SAMPLE);
  const rows = every > 1 ? all.filter((_, at) => at % every === 0) : all;
  const median = [0, 1].map((axis) => {
    const values = Float32Array.from(rows, (row) => places[2 * row + axis]).sort();
    return values[values.length >> 1];
  });
  const far = Float32Array.from(rows, (row) => Math.hypot(places[2 * row] - median[0], places[2 * row + 1] - median[1]));
  const nearest = rows[far.indexOf(Math.min(...far))];
  return [places[2 * nearest], places[2 * nearest + 1], far.sort()[Math.floor(0.75 * far.length)]];
}
