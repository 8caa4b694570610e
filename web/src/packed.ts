/** Numbers as Python packed them: decoded once, when they are first looked at. */
import type { Packed } from "./data";

export const MINUS_INFINITY = -32768;

const decoded = new WeakMap<Packed, Int16Array>();

export function integers(packed: Packed): Int16Array {
  let numbers = decoded.get(packed);
  if (!numbers) {
    numbers = decode(packed.data);
    decoded.set(packed, numbers);
  }
  return numbers;
}

function decode(base64: string): Int16Array {
  const bytes = atob(base64);
  const numbers = new Int16Array(bytes.length >> 1);
  for (let i = 0; i < numbers.length; i++) {
    numbers[i] = bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8);
  }
  return numbers;
}

/** One matrix out of a Packed, without copying it. */
export interface Plane {
  cells: Int16Array;
  rows: number;
  columns: number;
  digits: number;
}

/** Matrix `index` of a stack such as heads × queries × keys. */
export function plane(packed: Packed, index = 0): Plane {
  const [rows = 0, columns = 0] = packed.shape.slice(-2);
  const size = rows * columns;
  return { cells: integers(packed).subarray(index * size, (index + 1) * size), rows, columns, digits: packed.digits };
}

/** A row of numbers, such as the coverage of each word. */
export function row(packed: Packed): Plane {
  const cells = integers(packed);
  return { cells, rows: 1, columns: cells.length, digits: packed.digits };
}

export function printed(plane: Plane, index: number): string {
  return print(plane.cells[index] ?? 0, plane.digits);
}

function print(integer: number, digits: number): string {
  return integer === MINUS_INFINITY ? "−∞" : (integer / 10 ** digits).toFixed(digits);
}

/** The same digits as a percentage: 0.201 is 20.1 %. */
export function printedPercent(plane: Plane, index: number): string {
  const digits = Math.max(plane.digits - 2, 0);
  return `${((plane.cells[index] ?? 0) / 10 ** (plane.digits - 2)).toFixed(digits)} %`;
}

/** For charts, which want numbers; −∞ becomes a gap. */
export function numbers(packed: Packed, index = 0, length = packed.shape.at(-1) ?? 0): (number | null)[] {
  const cells = integers(packed).subarray(index * length, (index + 1) * length);
  return Array.from(cells, (n) => (n === MINUS_INFINITY ? null : n / 10 ** packed.digits));
}

/** The smallest and the largest integer: the ends of the colour scale. */
export function extent(plane: Plane): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const n of plane.cells) {
    if (n === MINUS_INFINITY) continue;
    if (n < low) low = n;
    if (n > high) high = n;
  }
  return low <= high ? [low, high] : [0, 0];
}
