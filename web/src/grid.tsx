/** A matrix as a table that the arrow keys walk through: every cell has its number, and a line says what it means. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { CanvasGrid } from "./canvas_grid";
import { type GridProps, moved, shares } from "./cells";
import { painted } from "./colours";
import { printed } from "./packed";
import { Scroll } from "./scroll";
import { Token } from "./token";

const MOST_CELLS = 48; // rows or columns; more are a picture with the numbers of a part

export function Grid(props: GridProps) {
  const small = props.plane.rows <= MOST_CELLS && props.plane.columns <= MOST_CELLS;
  return small ? <TableGrid {...props} /> : <CanvasGrid {...props} />;
}

function TableGrid(props: GridProps) {
  const status = useSignal("");
  const table = useRef<HTMLTableElement>(null);
  const active = useRef<HTMLTableCellElement | null>(null);

  // One cell is in the tab order. It is moved by hand: drawing two thousand cells anew for each key would be slow.
  const enter = (cell: HTMLTableCellElement) => {
    if (active.current) active.current.tabIndex = -1;
    active.current = cell;
    cell.tabIndex = 0;
  };
  useLayoutEffect(() => {
    if (!active.current?.isConnected) enter(table.current!.rows[1]!.cells[1]!);
  });
  const tell = (event: Event) => {
    const cell = cellOf(event);
    if (!cell) return;
    const [row, column] = placeOf(cell);
    status.value = props.say(row, column);
    light(table.current!, row, column);
    if (event.type !== "focusin") return;
    enter(cell);
    props.picked?.(row, column);
  };

  return (
    <div class="grid">
      <Scroll label={props.label}>
        <table
          role="grid" class="cells" aria-label={props.label} ref={table}
          onFocusIn={tell} onPointerOver={tell} onKeyDown={(event) => move(event, table.current!)}
          onClick={(event) => cellOf(event)?.focus()}
        >
          <Head {...props} />
          <Body {...props} />
        </table>
      </Scroll>
      <p role="status" class="readout">{status}</p>
    </div>
  );
}

function Head({ corner, columns, plane }: GridProps) {
  return (
    <thead>
      <tr>
        <td class="corner">{corner}</td>
        {Array.from({ length: plane.columns }, (_, column) => (
          <th scope="col"><span class="upright"><Token text={columns[column] ?? String(column + 1)} /></span></th>
        ))}
      </tr>
    </thead>
  );
}

const AT_ONCE = 12; // rows painted with the screen; the others come a frame later, so that a click answers at once

function Body({ plane, rows, fromZero, text, marked }: GridProps) {
  const all = useSignal(plane.rows <= AT_ONCE);
  useEffect(() => {
    const frame = requestAnimationFrame(() => setTimeout(() => (all.value = true)));
    return () => cancelAnimationFrame(frame);
  }, []);
  const share = shares(plane, fromZero);
  const cell = (row: number, column: number) => {
    const index = row * plane.columns + column;
    return (
      <td tabIndex={-1} class={marked?.(row, column)} style={painted(share(index))}>
        {text ? text(row, column) : printed(plane, index)}
      </td>
    );
  };
  return (
    <tbody>
      {Array.from({ length: all.value ? plane.rows : AT_ONCE }, (_, row) => (
        <tr>
          <th scope="row"><Token text={rows[row] ?? String(row + 1)} /></th>
          {Array.from({ length: plane.columns }, (_, column) => cell(row, column))}
        </tr>
      ))}
    </tbody>
  );
}

function cellOf(event: Event): HTMLTableCellElement | null {
  return (event.target as Element).closest<HTMLTableCellElement>("tbody td");
}

function placeOf(cell: HTMLTableCellElement): [row: number, column: number] {
  return [(cell.parentElement as HTMLTableRowElement).rowIndex - 1, cell.cellIndex - 1];
}

/** Emphasise the two headings of a cell. */
function light(table: HTMLTableElement, row: number, column: number): void {
  for (const heading of table.querySelectorAll(".lit")) heading.classList.remove("lit");
  table.rows[0]!.cells[column + 1]!.classList.add("lit");
  table.rows[row + 1]!.cells[0]!.classList.add("lit");
}

function move(event: KeyboardEvent, table: HTMLTableElement): void {
  const cell = cellOf(event);
  if (!cell) return;
  const [row, column] = placeOf(cell);
  const next = moved(event, row, column, table.rows.length - 1, table.rows[0]!.cells.length - 1);
  if (!next) return;
  event.preventDefault();
  table.rows[next[0] + 1]!.cells[next[1] + 1]!.focus();
}
