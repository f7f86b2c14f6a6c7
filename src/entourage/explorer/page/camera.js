// Where one looks: a place in the plane and how near. Mouse, touch, wheel and keys move it.

const NEAREST = 400;

/** The part of the plane that is seen. Places are within -1 and 1. */
export class Camera {
  constructor() {
    this.x = 0;
    this.y = 0;
    this.zoom = 1;
    this.resize(1, 1);
  }

  /** `top` and `bottom`: pixels that are covered there, so that the map is shown between them. */
  resize(width, height, top = 0, bottom = 0) {
    Object.assign(this, { width, height, top, bottom });
  }

  /** The middle of what is free of the screen. */
  get middle() {
    return [this.width / 2, (this.top + this.height - this.bottom) / 2];
  }

  /** Pixels of one unit of the plane. */
  get unit() {
    return 0.485 * Math.max(Math.min(this.width, this.height - this.top - this.bottom), 60) * this.zoom;
  }

  /** For the graphics card: from the plane to -1..1. */
  get clip() {
    const shift = (this.height / 2 - this.middle[1]) / this.unit; // of the middle, in the plane
    return { x: this.x, y: this.y - shift, sx: (2 * this.unit) / this.width, sy: (2 * this.unit) / this.height };
  }

  /** Where a place of the plane is on the screen. */
  toScreen(x, y) {
    const [px, py] = this.middle;
    return [px + (x - this.x) * this.unit, py - (y - this.y) * this.unit];
  }

  /** Which place of the plane is here on the screen. */
  toPlane(px, py) {
    const [middle, centre] = this.middle;
    return [this.x + (px - middle) / this.unit, this.y - (py - centre) / this.unit];
  }

  pan(dx, dy) {
    this.x = Math.max(-1.5, Math.min(1.5, this.x - dx / this.unit));
    this.y = Math.max(-1.5, Math.min(1.5, this.y + dy / this.unit));
  }

  /** Zoom such that what is at px, py stays there. */
  zoomAt(factor, px = this.middle[0], py = this.middle[1]) {
    const [x, y] = this.toPlane(px, py);
    this.zoom = Math.max(0.6, Math.min(NEAREST, this.zoom * factor));
    const [nowX, nowY] = this.toPlane(px, py);
    this.x += x - nowX;
    this.y += y - nowY;
  }

  fit() {
    [this.x, this.y, this.zoom] = [0, 0, 1];
  }
}

/**
 * Let pointers move a camera. Options: mode() is "pan", "lasso" or "box"; moved() after a change; hover(px, py) or
 * hover(null); click(px, py); draw(points, done) while something is drawn around points.
 */
export function steer(canvas, camera, { mode, moved, hover, click, draw }) {
  const pointers = new Map();
  let drawn = null;
  let travelled = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    travelled = 0;
    const drawing = mode() !== "pan" || event.shiftKey;
    drawn = drawing && pointers.size === 1 ? { kind: mode() === "box" ? "box" : "lasso", points: [place(event)] } : null;
    hover(null);
  });

  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      hover(...now);
      return;
    }
    travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (pointers.size === 2) pinch(event.pointerId, now);
    else if (drawn) extend(now);
    else camera.pan(now[0] - before[0], now[1] - before[1]);
    pointers.set(event.pointerId, now);
    if (!drawn) moved();
  });

  function pinch(id, now) {
    drawn = null;
    const [other] = [...pointers].filter(([each]) => each !== id).map(([, at]) => at);
    const before = pointers.get(id);
    const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    camera.zoomAt(apart(now) / Math.max(apart(before), 1), ...middle);
    camera.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
  }

  function extend(now) {
    const [first] = drawn.points;
    if (drawn.kind === "box") drawn.points = [first, [now[0], first[1]], now, [first[0], now[1]]];
    else drawn.points.push(now);
    draw(drawn.points, false);
  }

  function lift(event) {
    if (!pointers.delete(event.pointerId)) return;
    if (drawn && drawn.points.length > 2 && travelled > 6) draw(drawn.points, true);
    else if (travelled <= 6 && event.type === "pointerup") click(...place(event));
    drawn = null;
  }

  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      camera.zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), ...place(event));
      moved();
    },
    { passive: false },
  );
}
