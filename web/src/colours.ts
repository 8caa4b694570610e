/** One sequential scale (ColorBrewer's YlGnBu): paper for little, ink for much; the other way round in the dark. */
import { signal } from "@preact/signals";

type Colour = readonly [red: number, green: number, blue: number];

const LIGHT: readonly Colour[] = [
  [255, 255, 245], [237, 248, 217], [199, 233, 190], [127, 205, 187], [65, 182, 196],
  [29, 145, 192], [34, 94, 168], [37, 52, 148], [8, 29, 88],
];
const DARK: readonly Colour[] = [
  [20, 26, 38], [25, 40, 84], [37, 58, 138], [34, 94, 168], [29, 145, 192],
  [65, 182, 196], [127, 205, 187], [199, 233, 180], [255, 255, 217],
];

const preference = matchMedia("(prefers-color-scheme: dark)");
export const dark = signal(preference.matches);
preference.addEventListener("change", () => (dark.value = preference.matches));

/** The scale worked out once, in 256 shades: a page draws a hundred thousand cells. */
interface Shades {
  styles: { backgroundColor: string; color: string }[];
  pixels: Uint32Array; // as a canvas stores them
}

const LAST = 255;
const worked: { light?: Shades; dark?: Shades } = {};

function shades(): Shades {
  return dark.value ? (worked.dark ??= shadesOf(DARK)) : (worked.light ??= shadesOf(LIGHT));
}

function shadesOf(scale: readonly Colour[]): Shades {
  const colours = Array.from({ length: LAST + 1 }, (_, i) => between(scale, i / LAST));
  const bytes = Uint8ClampedArray.from(colours.flatMap((colour) => [...colour, 255]));
  return { styles: colours.map(readable), pixels: new Uint32Array(bytes.buffer) };
}

function between(scale: readonly Colour[], share: number): Colour {
  const place = share * (scale.length - 1);
  const left = Math.min(Math.floor(place), scale.length - 2);
  const from = scale[left]!;
  const to = scale[left + 1]!;
  const mix = (channel: 0 | 1 | 2) => Math.round(from[channel] + (to[channel] - from[channel]) * (place - left));
  return [mix(0), mix(1), mix(2)];
}

/** Of black and white the better one always has a contrast above 4.5. */
function readable(background: Colour) {
  return { backgroundColor: `rgb(${background.join(" ")})`, color: luminance(background) > 0.179 ? "#000" : "#fff" };
}

const shade = (share: number) => Math.round(Math.min(Math.max(share, 0), 1) * LAST);

/** Background and text of a cell, for a share between 0 and 1. */
export function painted(share: number): { backgroundColor: string; color: string } {
  return shades().styles[shade(share)]!;
}

/** One pixel for each share. */
export function pixels(count: number, share: (index: number) => number): Uint8ClampedArray<ArrayBuffer> {
  const all = shades().pixels;
  const drawn = new Uint32Array(count);
  for (let i = 0; i < count; i++) drawn[i] = all[shade(share(i))]!;
  return new Uint8ClampedArray(drawn.buffer);
}

/** Relative luminance (WCAG 2). */
function luminance([red, green, blue]: Colour): number {
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

function linear(channel: number): number {
  const c = channel / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

/** Lines differ by dash as well as by colour. */
export const DASHES: readonly number[][] = [[], [8, 4], [2, 3], [10, 3, 2, 3], [1, 4], [14, 4]];
const LINES_LIGHT = ["#0b5c8a", "#a8410f", "#2a6f2e", "#7a3e9d", "#7a5f00", "#8a1f4b"];
const LINES_DARK = ["#7cc4ff", "#ffab7a", "#86d98a", "#d6a8f5", "#e6cf5c", "#ff9cbd"];

export function lineColour(index: number): string {
  const colours = dark.value ? LINES_DARK : LINES_LIGHT;
  return colours[index % colours.length]!;
}
