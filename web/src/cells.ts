/** What a grid needs to know, be it a table or a canvas. */
import { type Plane, extent } from "./packed";

export interface GridProps {
  label: string;
  plane: Plane;
  rows: string[];
  columns: string[];
  corner?: string; // what rows and columns are
  fromZero?: boolean; // colour 0 as nothing, as with weights; else the smallest number
  text?: (row: number, column: number) => string; // instead of the number itself
  marked?: (row: number, column: number) => string; // a class: "sure", "possible", "hidden"
  say: (row: number, column: number) => string;
  picked?: (row: number, column: number) => void;
}

/** How far along the colour scale each cell lies. */
export function shares(plane: Plane, fromZero = false): (index: number) => number {
  const [least, high] = extent(plane);
  const low = fromZero ? Math.min(0, least) : least;
  return (index) => (high > low ? (plane.cells[index]! - low) / (high - low) : 0);
}

const PAGE = 5; // rows that PageUp and PageDown jump over

/** Where a key leads from a cell; null for keys that do not move. */
export function moved(
  event: KeyboardEvent, row: number, column: number, rows: number, columns: number,
): [number, number] | null {
  const within = (value: number, size: number) => Math.max(0, Math.min(size - 1, value));
  switch (event.key) {
    case "ArrowUp": return [within(row - 1, rows), column];
    case "ArrowDown": return [within(row + 1, rows), column];
    case "ArrowLeft": return [row, within(column - 1, columns)];
    case "ArrowRight": return [row, within(column + 1, columns)];
    case "PageUp": return [within(row - PAGE, rows), column];
    case "PageDown": return [within(row + PAGE, rows), column];
    case "Home": return [event.ctrlKey ? 0 : row, 0];
    case "End": return [event.ctrlKey ? rows - 1 : row, columns - 1];
    default: return null;
  }
}
