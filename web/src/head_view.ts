/** What the large grid shows of one head: which numbers, under which names, and how a cell reads as a sentence. */
import type { AttentionLayer, Gold, Look } from "./data";
import type { GridProps } from "./cells";
import { type Plane, plane, printed, printedPercent } from "./packed";
import { quoted } from "./token";

export interface View {
  unit: "pieces" | "words";
  scores: boolean; // before the softmax
  masked: boolean;
}

export function grid(look: Look, layer: AttentionLayer, head: number, view: View): GridProps {
  const numbers = plane(packedOf(layer, view), head);
  const names = view.unit === "words" ? "names" : "pieces";
  const rows = look[layer.queries]?.[names] ?? [];
  const columns = look[layer.keys]?.[names] ?? [];
  const hidden = hides(layer, view);
  const text = (row: number, column: number) => {
    if (hidden(row, column)) return view.scores ? "−∞" : "0";
    return printed(numbers, row * numbers.columns + column);
  };
  return {
    label: `${view.scores ? "Scores" : "Attention weights"} of block ${layer.number}, head ${head + 1}`,
    corner: "query ↓ key →",
    plane: view.scores ? withoutHidden(numbers, hidden) : numbers,
    rows,
    columns,
    fromZero: !view.scores,
    text,
    marked: marks(look.gold, layer, view, hidden),
    say: (row, column) => sentence({ rows, columns, numbers, row, column, scores: view.scores, hidden: hidden(row, column) }),
  };
}

function packedOf(layer: AttentionLayer, view: View) {
  if (view.unit === "words" && layer.by_word) return layer.by_word;
  if (view.scores && layer.scores) return layer.scores;
  return view.masked ? layer.weights : (layer.unmasked ?? layer.weights);
}

type Cell = (row: number, column: number) => boolean;

/** The mask is known for pieces: a query sees the first keys only. */
function hides(layer: AttentionLayer, view: View): Cell {
  const { visible } = layer;
  if (!visible || !view.masked || view.unit === "words") return () => false;
  return (row, column) => column >= (visible[row] ?? Infinity);
}

/** Scores that the mask hides count as −∞, also for the colour scale. */
function withoutHidden(numbers: Plane, hidden: Cell): Plane {
  const cells = numbers.cells.map((n, i) => (hidden(Math.floor(i / numbers.columns), i % numbers.columns) ? -32768 : n));
  return { ...numbers, cells };
}

/** Classes of cells: hidden by the mask, or linked in the gold alignment (word view of the cross-attention). */
function marks(gold: Gold | null, layer: AttentionLayer, view: View, hidden: Cell) {
  if (!gold || gold.of !== "output" || layer.kind !== "cross") return (row: number, column: number) => (hidden(row, column) ? "hidden" : "");
  const before = layer.queries === "given" ? 1 : 0; // <start> comes before the first word
  const key = (source: number, target: number) => `${source}-${target}`;
  const sure = new Set(gold.sure.map(([source, target]) => key(source, target)));
  const possible = new Set(gold.possible.map(([source, target]) => key(source, target)));
  return (row: number, column: number) => {
    if (view.unit !== "words") return "";
    const link = key(column, row - before);
    return sure.has(link) ? "sure" : possible.has(link) ? "possible" : "";
  };
}

interface Said {
  rows: string[];
  columns: string[];
  numbers: Plane;
  row: number;
  column: number;
  scores: boolean;
  hidden: boolean;
}

function sentence({ rows, columns, numbers, row, column, scores, hidden }: Said): string {
  const query = `${quoted(rows[row] ?? "")} (query ${row + 1})`;
  const key = `${quoted(columns[column] ?? "")} (key ${column + 1})`;
  const index = row * numbers.columns + column;
  if (hidden) return `The mask hides ${key} from ${query}.`;
  if (scores) return `${query} scores ${printed(numbers, index)} with ${key}.`;
  return `${query} gives ${printedPercent(numbers, index)} of its attention to ${key}.`;
}
