// Points on the graphics card: one draw call, whatever the step. Places of two steps are attributes, and a number says
// how far each point is on its way between them, so that moving all of them uploads nothing.

const VERTEX = `#version 300 es
precision highp float;
in vec2 start, end, value;
in float code, shown;
uniform vec2 centre, scale, range;
uniform float share, moment, size, mode;
uniform vec3 labels[8], ramp[6], signs[3], dim;
out vec4 ink;
flat out int shape;

void main() {
  vec2 place = (mix(start, end, share) - centre) * scale;
  float now = mix(value.x, value.y, moment);
  float big = 1.0;
  shape = 0;
  vec3 colour;
  if (mode < 0.5) {
    int number = int(code);
    colour = number < 0 ? signs[1] : labels[number % 8];
    shape = number < 0 ? 0 : (number % 8 + number / 8) % 4;
  } else if (isnan(now)) {
    colour = dim;
    big = 0.7;
  } else if (mode < 1.5) {
    float far = clamp(abs(now) / max(range.y, 1e-6), 0.0, 1.0);
    colour = mix(signs[1], now < 0.0 ? signs[0] : signs[2], abs(now) < 1e-6 ? 0.0 : 0.55 + 0.45 * far);
    shape = abs(now) < 1e-6 ? 0 : now < 0.0 ? 4 : 2;
    big = 0.75 + 0.6 * far;
  } else {
    float part = clamp((now - range.x) / max(range.y - range.x, 1e-6), 0.0, 1.0);
    float at = part * 5.0;
    int low = int(min(floor(at), 4.0));
    colour = mix(ramp[low], ramp[low + 1], at - float(low));
    big = 0.7 + 0.7 * part;
  }
  bool faint = shown < 1.5;
  ink = faint ? vec4(dim, 0.55) : vec4(colour, 0.88);
  if (faint) big *= 0.75;
  gl_PointSize = size * big;
  gl_Position = shown < 0.5 ? vec4(4.0, 4.0, 0.0, 1.0) : vec4(place, faint ? 0.5 : 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 ink;
flat in int shape;
uniform float size;
out vec4 colour;

void main() {
  vec2 at = gl_PointCoord * 2.0 - 1.0;
  float out_by;
  if (shape == 1) out_by = max(abs(at.x), abs(at.y)) - 0.78;
  else if (shape == 2) out_by = max(abs(at.x) * 0.9 + at.y * -0.5 - 0.42, at.y - 0.72);
  else if (shape == 3) out_by = abs(at.x) + abs(at.y) - 0.98;
  else if (shape == 4) out_by = max(abs(at.x) * 0.9 + at.y * 0.5 - 0.42, -at.y - 0.72);
  else out_by = length(at) - 0.88;
  float soft = 2.5 / max(size, 2.0);
  float alpha = ink.a * (1.0 - smoothstep(-soft, soft * 0.4, out_by));
  if (alpha < 0.02) discard;
  colour = vec4(ink.rgb * alpha, alpha);
}`;

const MODES = { label: 0, signed: 1, ramp: 2 };

/** Draws points with WebGL 2. */
export class Points {
  constructor(canvas) {
    // preserveDrawingBuffer: what is drawn can be read again, as by tests and by who saves the picture
    this.gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true, preserveDrawingBuffer: true });
    if (!this.gl) throw new Error("This browser cannot draw with WebGL 2; the map needs it. Search and lists work without.");
    this.canvas = canvas;
    this.#start();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.#start();
      this.onrestored?.();
    });
  }

  #start() {
    const gl = this.gl;
    this.program = linked(gl);
    gl.useProgram(this.program);
    this.at = Object.fromEntries(
      ["start", "end", "value", "code", "shown"].map((name) => [name, gl.getAttribLocation(this.program, name)]),
    );
    this.uniform = Object.fromEntries(
      ["centre", "scale", "range", "share", "moment", "size", "mode", "labels", "ramp", "signs", "dim"].map((name) => [
        name,
        gl.getUniformLocation(this.program, name),
      ]),
    );
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.buffers = {};
  }

  /** The places of every step: an array of Float32Array, x and y of each point. */
  setPlaces(steps) {
    this.count = steps[0].length / 2;
    this.buffers.steps = steps.map((places, step) => this.#filled(this.buffers.steps?.[step], places));
  }

  /** Labels of points as numbers, -1 for none. */
  setCodes(codes) {
    this.buffers.code = this.#filled(this.buffers.code, Float32Array.from(codes));
  }

  /** Values before and after, one pair for each point. */
  setValues(before, after) {
    const pairs = new Float32Array(2 * before.length);
    for (let row = 0; row < before.length; row++) {
      pairs[2 * row] = before[row];
      pairs[2 * row + 1] = after[row];
    }
    this.buffers.value = this.#filled(this.buffers.value, pairs);
  }

  /** Of each point: 0 hidden, 1 faint, 2 shown. */
  setShown(states) {
    this.buffers.shown = this.#filled(this.buffers.shown, states);
  }

  /** A buffer with these values: the one there is, or a new one. */
  #filled(buffer, array) {
    buffer ??= this.gl.createBuffer();
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, array, this.gl.STATIC_DRAW);
    return buffer;
  }

  #attribute(name, buffer, size, kind = this.gl.FLOAT) {
    const gl = this.gl;
    if (this.at[name] < 0 || !buffer) return;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(this.at[name]);
    gl.vertexAttribPointer(this.at[name], size, kind, false, 0, 0);
  }

  /** Draw all points: camera {x, y, sx, sy}, step (may lie between two), size in pixels, mode, range, colours. */
  draw({ camera, step, size, mode, range, colours }) {
    const gl = this.gl;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (!this.buffers.steps || !this.buffers.shown) return;
    const last = this.buffers.steps.length - 1;
    const low = Math.min(Math.floor(step), Math.max(last - 1, 0));
    this.#attribute("start", this.buffers.steps[low], 2);
    this.#attribute("end", this.buffers.steps[Math.min(low + 1, last)], 2);
    this.#attribute("value", this.buffers.value, 2);
    this.#attribute("code", this.buffers.code, 1);
    this.#attribute("shown", this.buffers.shown, 1, gl.UNSIGNED_BYTE);
    gl.uniform2f(this.uniform.centre, camera.x, camera.y);
    gl.uniform2f(this.uniform.scale, camera.sx, camera.sy);
    gl.uniform2f(this.uniform.range, range[0], range[1]);
    gl.uniform1f(this.uniform.share, step - low);
    gl.uniform1f(this.uniform.moment, last ? step / last : 1);
    gl.uniform1f(this.uniform.size, size);
    gl.uniform1f(this.uniform.mode, MODES[mode]);
    gl.uniform3fv(this.uniform.labels, colours.numbers.labels);
    gl.uniform3fv(this.uniform.ramp, colours.numbers.ramp);
    gl.uniform3fv(this.uniform.signs, colours.numbers.signed);
    gl.uniform3fv(this.uniform.dim, colours.dim);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }
}

function linked(gl) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
    throw new Error(`The graphics card refuses the map: ${gl.getProgramInfoLog(program)}`);
  }
  return program;
}
