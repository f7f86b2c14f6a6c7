// Colours that people with any kind of colour vision tell apart, and shapes and sizes that say the same.

/**
 * Near Okabe and Ito's colours, and moved apart: any two of them are 0.09 or more from each other in OKLab as people
 * without one kind of cones see them, too (Machado et al. 2009).
 */
const LIGHT = ["#2b58a2", "#c04637", "#098777", "#d757b3", "#ae8a0d", "#3093ec", "#403a2f", "#713c6d"];
const DARK = ["#5cbefe", "#de7c00", "#69aa77", "#f290c0", "#b3ca65", "#b8e1ff", "#f6c3ba", "#aa7bb5"];
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

/** Which shape a label has: of the first eight, whose colours all differ, one and the next differ in it, too. */
const shapeOf = (code) => ((code % 8) + Math.floor(code / 8)) % 4;

/** How a label looks: its colour and its shape, 32 of them before they repeat. */
export function labelStyle(colours, code) {
  if (code < 0) return { colour: colours.signed[1], shape: SHAPES[0] };
  return { colour: colours.labels[code % 8], shape: SHAPES[shapeOf(code)] };
}

/** What a shape is called. */
export const shapeName = (code) => SHAPE_NAMES[shapeOf(code)];
