/** A matrix too large for a table: square cells on a canvas with names beside them, and the numbers around one of them.
 *  It is read cell by cell with the pointer or the arrow keys. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type GridProps, moved, shares } from "./cells";
import { dark, painted, pixels } from "./colours";
import { type Plane, printed } from "./packed";
import { Scroll } from "./scroll";
import { Token } from "./token";

/** One pixel for each cell; CSS makes them larger. */
export function draw(canvas: HTMLCanvasElement, plane: Plane, fromZero = false): void {
  canvas.width = plane.columns;
  canvas.height = plane.rows;
  const image = pixels(plane.cells.length, shares(plane, fromZero));
  canvas.getContext("2d")!.putImageData(new ImageData(image, plane.columns, plane.rows), 0, 0);
}

type Place = [row: number, column: number];

export function CanvasGrid(props: GridProps) {
  const { plane } = props;
  const place = useSignal<Place | null>(null);
  const byKey = useRef(false); // a pointer is already where it points: only keys scroll
  const at = place.value && place.value[0] < plane.rows && place.value[1] < plane.columns ? place.value : null;
  const go = (next: Place | null, keyed: boolean) => {
    if (!next) return;
    byKey.current = keyed;
    place.value = next;
    props.picked?.(...next);
  };
  const key = (event: KeyboardEvent) => {
    const [row, column] = at ?? [0, -1];
    const next = moved(event, row, column, plane.rows, plane.columns);
    if (next) event.preventDefault();
    go(next, true);
  };
  return (
    <div class="grid">
      <div
        class="scroll board" role="application" aria-roledescription="large grid" tabIndex={0}
        aria-label={`${props.label}: ${plane.rows} rows, ${plane.columns} columns. The arrow keys read it cell by cell.`}
        onKeyDown={key} onFocus={() => at ?? go([0, 0], true)}
      >
        <Surface {...props} at={at} follow={byKey.current} point={(next) => go(next, false)} />
      </div>
      <p role="status" class="readout">{at ? props.say(...at) : ""}</p>
      <Around {...props} at={at ?? [0, 0]} />
      {at && <RowTable {...props} row={at[0]} />}
    </div>
  );
}

// ── the picture ─────────────────────────────────────────────────────────────────────────

const LARGEST = 14; // pixels of a cell's side
const SMALLEST = 3;
const ACROSS = 1400; // pixels that a picture is about wide at most
const LINE = 14; // pixels that a name needs

const sideOf = ({ rows, columns }: Plane) => Math.max(SMALLEST, Math.min(LARGEST, Math.floor(ACROSS / Math.max(rows, columns))));

interface SurfaceProps extends GridProps {
  at: Place | null;
  follow: boolean;
  point: (next: Place | null) => void;
}

function Surface({ plane, rows, columns, corner, fromZero, at, follow, point }: SurfaceProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const cursor = useRef<HTMLSpanElement>(null);
  const inDark = dark.value;
  const side = sideOf(plane);
  useEffect(() => draw(canvas.current!, plane, fromZero), [plane.cells, inDark]);
  useLayoutEffect(() => {
    if (follow) cursor.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [at?.[0], at?.[1]]);
  return (
    <div class="surface">
      <span class="corner" aria-hidden="true">{corner}</span>
      <Names class="above" names={columns} count={plane.columns} side={side} lit={at?.[1]} />
      <Names class="beside" names={rows} count={plane.rows} side={side} lit={at?.[0]} />
      <div class="picture" style={{ width: `${side * plane.columns}px`, height: `${side * plane.rows}px` }}>
        <canvas ref={canvas} aria-hidden="true" onPointerMove={(event) => point(under(event, plane))} />
        {at && <span class="cursor" ref={cursor} style={frame(at, side)} />}
      </div>
    </div>
  );
}

interface NamesProps {
  class: "above" | "beside";
  names: string[];
  count: number;
  side: number;
  lit: number | undefined;
}

/** As many names as there is room for, and always that of the cell that is pointed at. They are read aloud cell by cell. */
function Names({ class: where, names, count, side, lit }: NamesProps) {
  const every = Math.ceil(LINE / side);
  const all = Array.from({ length: count }, (_, i) => i);
  const shown = all.filter((i) => i === lit || (i % every === 0 && (lit === undefined || Math.abs(i - lit) >= every)));
  const long = `${side * count}px`;
  const deep = `${roomFor(names)}px`;
  return (
    <div class={`names ${where}`} aria-hidden="true" style={where === "above" ? { width: long, height: deep } : { height: long, width: deep }}>
      {shown.map((i) => {
        const middle = `${(i + 0.5) * side - LINE / 2}px`;
        return (
          <span key={i} class={i === lit ? "lit" : ""} style={where === "above" ? { left: middle } : { top: middle }}>
            <Token text={names[i] ?? String(i + 1)} />
          </span>
        );
      })}
    </div>
  );
}

/** Pixels for the longest name, up to about a dozen letters; longer ones are cut, and whole in the line below. */
const roomFor = (names: string[]) => Math.max(28, Math.min(96, 10 + 7 * Math.max(...names.map((name) => name.length))));

function under(event: PointerEvent, plane: Plane): Place | null {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  const row = Math.floor(((event.clientY - box.top) / box.height) * plane.rows);
  const column = Math.floor(((event.clientX - box.left) / box.width) * plane.columns);
  return row >= 0 && column >= 0 && row < plane.rows && column < plane.columns ? [row, column] : null;
}

function frame([row, column]: Place, side: number) {
  return { left: `${column * side}px`, top: `${row * side}px`, width: `${side}px`, height: `${side}px` };
}

// ── the numbers ─────────────────────────────────────────────────────────────────────────

const REACH = { rows: 3, columns: 5 }; // cells to each side of the one that is pointed at

/** As many places around one as fit, within 0 … count − 1. */
function window(middle: number, reach: number, count: number): number[] {
  const first = Math.max(0, Math.min(middle - reach, count - 2 * reach - 1));
  return Array.from({ length: Math.min(count, 2 * reach + 1) }, (_, i) => first + i);
}

function Around({ plane, rows, columns, corner, fromZero, text, marked, at }: GridProps & { at: Place }) {
  const share = shares(plane, fromZero);
  const down = window(at[0], REACH.rows, plane.rows);
  const across = window(at[1], REACH.columns, plane.columns);
  const here = (row: number, column: number) => (row === at[0] && column === at[1] ? "picked" : "");
  return (
    <Scroll label="The numbers around it">
      <table class="cells around">
        <caption class="unseen">The numbers around the cell that is pointed at</caption>
        <thead>
          <tr>
            <td class="corner">{corner}</td>
            {across.map((column) => (
              <th scope="col" class={column === at[1] ? "lit" : ""}><span class="upright"><Token text={columns[column] ?? String(column + 1)} /></span></th>
            ))}
          </tr>
        </thead>
        <tbody>
          {down.map((row) => (
            <tr>
              <th scope="row" class={row === at[0] ? "lit" : ""}><Token text={rows[row] ?? String(row + 1)} /></th>
              {across.map((column) => (
                <td class={`${marked?.(row, column) ?? ""} ${here(row, column)}`} style={painted(share(row * plane.columns + column))}>
                  {text ? text(row, column) : printed(plane, row * plane.columns + column)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function RowTable({ plane, rows, columns, row, text }: GridProps & { row: number }) {
  const name = rows[row] ?? String(row + 1);
  const open = useSignal(false);
  return (
    <details onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>The numbers of this row as a table</summary>
      {open.value && (
        <Scroll class="low" label={`Numbers of row ${name}`}>
          <table class="plain">
            <thead><tr><th scope="col">column</th><th scope="col">number</th></tr></thead>
            <tbody>
              {Array.from({ length: plane.columns }, (_, column) => (
                <tr>
                  <th scope="row"><Token text={columns[column] ?? String(column + 1)} /></th>
                  <td>{text ? text(row, column) : printed(plane, row * plane.columns + column)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </details>
  );
}
