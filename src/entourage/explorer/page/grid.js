// Which points lie where: points sorted into cells, so that the nearest is found among few.

const SIDE = 256;

/** An index of places (x, y of each point) within a box. */
export class Grid {
  constructor(places) {
    this.places = places;
    const count = places.length / 2;
    [this.left, this.bottom, this.cell] = bounds(places);
    this.starts = new Uint32Array(SIDE * SIDE + 1);
    const cells = new Uint32Array(count);
    for (let row = 0; row < count; row++) {
      cells[row] = this.#cellOf(places[2 * row], places[2 * row + 1]);
      this.starts[cells[row] + 1]++;
    }
    for (let cell = 0; cell < SIDE * SIDE; cell++) this.starts[cell + 1] += this.starts[cell];
    this.rows = new Uint32Array(count);
    const next = this.starts.slice();
    for (let row = 0; row < count; row++) this.rows[next[cells[row]]++] = row;
  }

  #column(x) {
    return Math.max(0, Math.min(SIDE - 1, Math.floor((x - this.left) / this.cell)));
  }

  #line(y) {
    return Math.max(0, Math.min(SIDE - 1, Math.floor((y - this.bottom) / this.cell)));
  }

  #cellOf(x, y) {
    return this.#line(y) * SIDE + this.#column(x);
  }

  /** Call visit(row) for the points of all cells that touch a box. */
  within(left, bottom, right, top, visit) {
    const [first, last] = [this.#column(left), this.#column(right)];
    for (let line = this.#line(bottom); line <= this.#line(top); line++) {
      const [from, to] = [this.starts[line * SIDE + first], this.starts[line * SIDE + last + 1]];
      for (let at = from; at < to; at++) visit(this.rows[at]);
    }
  }

  /** The nearest point within a radius that may be found, or -1. */
  nearest(x, y, radius, may = () => true) {
    let [best, found] = [radius * radius, -1];
    this.within(x - radius, y - radius, x + radius, y + radius, (row) => {
      const far = (this.places[2 * row] - x) ** 2 + (this.places[2 * row + 1] - y) ** 2;
      if (far <= best && may(row)) [best, found] = [far, row];
    });
    return found;
  }

  /** The points inside a polygon, a list of [x, y]. */
  inside(polygon, may = () => true) {
    const [xs, ys] = [polygon.map((at) => at[0]), polygon.map((at) => at[1])];
    const found = [];
    this.within(Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys), (row) => {
      if (may(row) && contains(polygon, this.places[2 * row], this.places[2 * row + 1])) found.push(row);
    });
    return found;
  }
}

function bounds(places) {
  let [left, bottom, right, top] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let at = 0; at < places.length; at += 2) {
    left = Math.min(left, places[at]);
    right = Math.max(right, places[at]);
    bottom = Math.min(bottom, places[at + 1]);
    top = Math.max(top, places[at + 1]);
  }
  return [left, bottom, Math.max(right - left, top - bottom, 1e-6) / SIDE];
}

/** Whether a polygon holds a place: how often a line from it crosses the sides. */
export function contains(polygon, x, y) {
  let inside = false;
  for (let one = 0, other = polygon.length - 1; one < polygon.length; other = one++) {
    const [[x1, y1], [x2, y2]] = [polygon[one], polygon[other]];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  }
  return inside;
}

/** Places at a step that may lie between two. */
export function placesAt(steps, step) {
  const last = steps.length - 1;
  const low = Math.min(Math.floor(step), Math.max(last - 1, 0));
  const share = step - low;
  if (share === 0 || !last) return steps[low];
  const [start, end] = [steps[low], steps[low + 1]];
  return start.map((value, at) => value + share * (end[at] - value));
}
