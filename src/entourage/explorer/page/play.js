// The slider of the steps, and what moves it by itself.

import { byId, fill } from "./dom.js";

const SECONDS = 3.2; // from before to after
const REST = 0.7; // at either end

/** The slider and the play button; moved(step, done) after every change. */
export class Timeline {
  constructor(steps, moved) {
    this.steps = steps;
    this.moved = moved;
    this.slider = byId("step");
    this.slider.max = steps;
    this.slider.addEventListener("input", () => {
      this.stop();
      this.#to(Number(this.slider.value), false);
    });
    this.slider.addEventListener("change", () => this.moved(this.step, true));
    byId("play").addEventListener("click", () => this.toggle());
    this.#label();
  }

  /** Show a step without telling of it. */
  show(step) {
    this.step = Math.max(0, Math.min(this.steps, step));
    this.slider.value = this.step;
    const whole = Math.round(this.step);
    const exact = Math.abs(this.step - whole) < 0.005;
    const said = this.step <= 0 ? "raw" : exact ? `step ${whole} of ${this.steps}` : `${this.step.toFixed(1)} of ${this.steps}`;
    fill(byId("now"), said);
    this.slider.setAttribute("aria-valuetext", said);
  }

  #to(step, done) {
    this.show(step);
    this.moved(this.step, done);
  }

  /** Go to a step and say so. */
  go(step) {
    this.stop();
    this.#to(step, true);
  }

  get playing() {
    return this.frame !== undefined;
  }

  toggle() {
    if (this.playing) this.stop();
    else this.play();
  }

  play() {
    const start = this.step >= this.steps - 0.01 ? 0 : this.step;
    let begun;
    const tick = (now) => {
      begun ??= now + (start === 0 ? 1000 * REST : 0);
      const share = Math.max(0, Math.min(1, (now - begun) / (1000 * SECONDS * (1 - start / this.steps) || 1)));
      this.#to(start + (this.steps - start) * eased(share), false);
      if (share < 1) this.frame = requestAnimationFrame(tick);
      else this.stop();
    };
    this.frame = requestAnimationFrame(tick);
    this.#label();
  }

  stop() {
    if (!this.playing) return;
    cancelAnimationFrame(this.frame);
    this.frame = undefined;
    this.#label();
    this.moved(this.step, true);
  }

  #label() {
    byId("play").textContent = this.playing ? "❚❚" : "▶";
    byId("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
  }
}

const eased = (share) => (share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) ** 2);
