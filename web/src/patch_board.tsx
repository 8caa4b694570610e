/** The patches of an image, laid out as they lie on it: one is chosen with a click or the arrow keys, all are painted. */
import type { CSSProperties } from "preact";
import { useRef } from "preact/hooks";
import { moved } from "./cells";

export interface BoardProps {
  label: string;
  grid: [rows: number, columns: number];
  under?: string; // the image below the patches, as data URL
  over?: { data: string; faint: boolean }; // another one upon it
  dim?: boolean; // the image below in grey, so that light shows
  shape: [height: number, width: number]; // of the board, to scale
  paint?: (index: number) => CSSProperties;
  say: (index: number) => string; // of each patch, for those who do not see it
  chosen: number | null; // index of a patch
  choose: (index: number) => void;
  home?: () => void; // what the key Home chooses instead of the first patch of a row
}

export function PatchBoard({ label, grid: [rows, columns], under, over, dim, shape, paint, say, chosen, choose, home }: BoardProps) {
  const table = useRef<HTMLTableElement>(null);
  const go = (row: number, column: number) => {
    choose(row * columns + column);
    table.current!.rows[row]!.cells[column]!.focus();
  };
  const press = (event: KeyboardEvent) => {
    const cell = (event.target as Element).closest("td");
    if (!cell) return;
    const row = (cell.parentElement as HTMLTableRowElement).rowIndex;
    const next = event.key === "Home" && home ? null : moved(event, row, cell.cellIndex, rows, columns);
    if (!next && event.key !== "Home") return;
    event.preventDefault();
    if (next) go(...next);
    else home?.();
  };
  const stop = chosen ?? 0; // the one cell in the tab order
  const range = (length: number) => Array.from({ length }, (_, i) => i);
  const ratio = `${shape[1]} / ${shape[0]}`;
  return (
    <div class="patches" style={{ aspectRatio: ratio, maxWidth: `min(100%, ${(26 * shape[1]) / shape[0]}rem, 40rem)` }}>
      {under && <img src={under} alt="" class={dim ? "dim" : ""} />}
      {over && <img src={over.data} alt="" class={over.faint ? "faint" : ""} />}
      <table role="grid" aria-label={label} ref={table} onKeyDown={press}>
        <tbody>
          {range(rows).map((row) => (
            <tr>
              {range(columns).map((column) => {
                const index = row * columns + column;
                return (
                  <td
                    tabIndex={index === stop ? 0 : -1} aria-selected={index === chosen} title={say(index)} style={paint?.(index)}
                    class={index === chosen ? "chosen" : ""} onClick={() => go(row, column)}
                  >
                    <span class="unseen">{say(index)}</span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Light on a grey image, the more the larger the share; the most is not quite opaque. */
export function lit(share: number): CSSProperties {
  return { backgroundColor: `rgb(255 196 40 / ${(0.85 * Math.max(0, Math.min(1, share))).toFixed(3)})` };
}

/** "row, column" of a patch, from 1. */
export function placeName(index: number, columns: number): string {
  return `${Math.floor(index / columns) + 1},${(index % columns) + 1}`;
}

export const counted = (length: number) => Array.from({ length }, (_, i) => String(i + 1));
