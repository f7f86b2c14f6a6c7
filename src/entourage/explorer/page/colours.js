// Colours that people with any kind of colour vision tell apart, and shapes and sizes that say the same.

/** Okabe and Ito's colours, as the light and the dark page show them. */
const LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b58900", "#3d8bc4", "#7a5195", "#4d4d4d"];
const DARK = ["#4aa8e0", "#f08a4b", "#2fc59b", "#e39ac4", "#e6b93f", "#8fd0f5", "#b597d6", "#c4c4c4"];
/** Cividis, from low to high. */
const RAMP_LIGHT = ["#c2ba96", "#a59c74", "#7d7c78", "#575d6d", "#2c4870", "#00224e"];
const RAMP_DARK = ["#56698a", "#6c7684", "#858480", "#a69d75", "#d3c064", "#fee838"];
/** Loss, no change, gain. */
const SIGNED_LIGHT = ["#b35806", "#a8a8a8", "#1b5fa8"];
const SIGNED_DARK = ["#ff9d4d", "#6d7278", "#6db4ff"];

export const SHAPES = ["●", "■", "▲", "◆"];
const SHAPE_NAMES = ["circles", "squares", "triangles", "diamonds"];

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);

/** The colours of a theme, as numbers for the graphics card and as text for the page. */
export function palette(dark) {
  const [labels, ramp, signed] = dark ? [DARK, RAMP_DARK, SIGNED_DARK] : [LIGHT, RAMP_LIGHT, SIGNED_LIGHT];
  return {
    labels,
    ramp,
    signed,
    numbers: { labels: labels.flatMap(rgb), ramp: ramp.flatMap(rgb), signed: signed.flatMap(rgb) },
    dim: rgb(dark ? "#3a4250" : "#d5d9e0"),
    ink: dark ? "#e8ebf0" : "#1d2430",
    quiet: dark ? "#a3adbb" : "#5a6473",
    paper: dark ? "#12161d" : "#fbfcfe",
    accent: dark ? "#ffd166" : "#111827",
  };
}

/** How a label looks: its colour and its shape, 32 of them before they repeat. */
export function labelStyle(colours, code) {
  if (code < 0) return { colour: colours.signed[1], shape: SHAPES[0] };
  return { colour: colours.labels[code % 8], shape: SHAPES[Math.floor(code / 8) % 4] };
}

/** What a shape is called. */
export const shapeName = (code) => SHAPE_NAMES[Math.floor(code / 8) % 4];
