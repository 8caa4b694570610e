/** A matrix too large for a table: drawn on a canvas, read cell by cell with the pointer or the arrow keys. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { type GridProps, moved, shares } from "./cells";
import { dark, pixels } from "./colours";
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

export function CanvasGrid(props: GridProps) {
  const { plane } = props;
  const place = useSignal<[number, number] | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const inDark = dark.value;
  useEffect(() => draw(canvas.current!, plane, props.fromZero), [plane.cells, inDark]);

  const at = place.value && place.value[0] < plane.rows && place.value[1] < plane.columns ? place.value : null;
  const go = (next: [number, number] | null) => {
    if (!next) return;
    place.value = next;
    props.picked?.(...next);
  };
  const key = (event: KeyboardEvent) => {
    const [row, column] = at ?? [0, -1];
    const next = moved(event, row, column, plane.rows, plane.columns);
    if (next) event.preventDefault();
    go(next);
  };
  return (
    <div class="grid">
      <div
        class="scroll board" role="application" aria-roledescription="large grid" tabIndex={0}
        aria-label={`${props.label}: ${plane.rows} rows, ${plane.columns} columns. The arrow keys read it cell by cell.`}
        onKeyDown={key} onFocus={() => at ?? go([0, 0])}
      >
        <div class="surface">
          <canvas ref={canvas} aria-hidden="true" onPointerMove={(event) => go(under(event, plane))} />
          {at && <span class="cursor" style={frame(at, plane)} />}
        </div>
      </div>
      <p role="status" class="readout">{at ? props.say(...at) : ""}</p>
      {at && <RowTable {...props} row={at[0]} />}
    </div>
  );
}

function under(event: PointerEvent, plane: Plane): [number, number] | null {
  const box = (event.currentTarget as Element).getBoundingClientRect();
  const row = Math.floor(((event.clientY - box.top) / box.height) * plane.rows);
  const column = Math.floor(((event.clientX - box.left) / box.width) * plane.columns);
  return row >= 0 && column >= 0 && row < plane.rows && column < plane.columns ? [row, column] : null;
}

function frame([row, column]: [number, number], plane: Plane) {
  return {
    left: `${(100 * column) / plane.columns}%`,
    top: `${(100 * row) / plane.rows}%`,
    width: `${100 / plane.columns}%`,
    height: `${100 / plane.rows}%`,
  };
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
