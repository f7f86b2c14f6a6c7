// Names of labels on the map: at the middle of their points, none over another, more of them as one looks closer.

const MOST = 90;
const FONT = "600 12px system-ui, sans-serif";

/** The place of each label at each step: of its points, the one nearest to their median. */
export class Names {
  constructor(labels, codes, steps) {
    this.labels = labels;
    this.steps = steps;
    this.members = labels.map(() => []);
    codes.forEach((code, row) => code >= 0 && this.members[code].push(row));
    this.order = labels.map((_, code) => code).filter((code) => this.members[code].length);
    this.order.sort((one, other) => this.members[other].length - this.members[one].length || one - other);
    this.kept = new Map();
    this.widths = new Map();
  }

  #centres(step) {
    if (!this.kept.has(step)) this.kept.set(step, this.labels.map((_, code) => middle(this.members[code], this.steps[step])));
    return this.kept.get(step);
  }

  /** Where a label is at a step that may lie between two. */
  place(code, step) {
    const low = Math.min(Math.floor(step), this.steps.length - 1);
    const high = Math.min(low + 1, this.steps.length - 1);
    const [start, end] = [this.#centres(low)[code], this.#centres(high)[code]];
    const share = step - low;
    return [start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])];
  }

  /** Draw those that fit. `only`: one label that is shown first; `may(code)`: whether it is shown at all. */
  draw(context, camera, step, { style, paper, only, may }) {
    const taken = [];
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const drawn = [];
    const order = only === undefined ? this.order : [only, ...this.order.filter((code) => code !== only)];
    for (const code of order) {
      if (drawn.length >= MOST) break;
      if (!may(code) || !this.members[code]?.length) continue;
      const [x, y] = camera.toScreen(...this.place(code, step));
      const width = this.#width(context, code);
      const box = [x - width / 2 - 3, y - 9, x + width / 2 + 3, y + 9];
      if (box[0] < 2 || box[1] < 2 || box[2] > camera.width - 2 || box[3] > camera.height - 2) continue;
      if (taken.some((each) => overlaps(box, each))) continue;
      taken.push(box);
      drawn.push(code);
      context.strokeStyle = paper;
      context.lineWidth = 4;
      context.strokeText(this.#short(code), x, y);
      context.fillStyle = style(code);
      context.fillText(this.#short(code), x, y);
    }
    return { drawn, boxes: taken };
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

const overlaps = (one, other) =>
  one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

function middle(rows, places) {
  if (!rows.length) return [0, 0];
  const median = [0, 1].map((axis) => {
    const values = Float32Array.from(rows, (row) => places[2 * row + axis]).sort();
    return values[values.length >> 1];
  });
  let [best, found] = [Infinity, rows[0]];
  for (const row of rows) {
    const far = (places[2 * row] - median[0]) ** 2 + (places[2 * row + 1] - median[1]) ** 2;
    if (far < best) [best, found] = [far, row];
  }
  return [places[2 * found], places[2 * found + 1]];
}
