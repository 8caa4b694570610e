/** A matrix in brackets with its name and shape. */
import type { Matrix as MatrixData } from "./data";
import { type Plane, plane, printed } from "./packed";
import { Scroll } from "./scroll";
import { Token } from "./token";

export function Matrix({ matrix }: { matrix: MatrixData }) {
  return (
    <figure class="matrix">
      <figcaption><Name text={matrix.name} /> <Shape shape={matrix.shape} /></figcaption>
      <Cells plane={asTable(matrix)} rows={matrix.rows} columns={matrix.columns} label={`${matrix.name} ${shapeText(matrix.shape)}`} />
      <LeftOut matrix={matrix} />
    </figure>
  );
}

/** A vector is a table of one row. */
export function asTable({ values, rows }: MatrixData): Plane {
  return values.shape.length > 1 ? plane(values) : { ...plane({ ...values, shape: [rows.length || 1, (values.shape[0] ?? 0) / (rows.length || 1)] }) };
}

function Cells({ plane, rows, columns, label }: { plane: Plane; rows: string[]; columns: string[]; label: string }) {
  const range = (length: number) => Array.from({ length }, (_, i) => i);
  return (
    <Scroll class="bracket" label={label}>
      <table>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr><td />{range(plane.columns).map((column) => <th scope="col"><Token text={columns[column] ?? String(column + 1)} /></th>)}</tr>
        </thead>
        <tbody>
          {range(plane.rows).map((row) => (
            <tr>
              <th scope="row"><Token text={rows[row] ?? String(row + 1)} /></th>
              {range(plane.columns).map((column) => <td>{printed(plane, row * plane.columns + column)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function LeftOut({ matrix: { shape, rows, columns } }: { matrix: MatrixData }) {
  const [allRows = 1, allColumns = 1] = shape.length > 1 ? shape.slice(-2) : [1, shape[0]];
  const parts = [
    columns.length && columns.length < allColumns ? `${columns.length} of ${allColumns} columns` : "",
    rows.length && rows.length < allRows ? `${rows.length} of ${allRows} rows` : "",
  ].filter(Boolean);
  return parts.length ? <p class="note">shown: {parts.join(", ")}</p> : null;
}

export function Shape({ shape }: { shape: number[] }) {
  return <span class="shape">{shapeText(shape)}</span>;
}

const shapeText = (shape: number[]) => `(${shape.join(" × ")})`;

/** W_Q with a subscript, K^T with a superscript. */
export function Name({ text }: { text: string }) {
  const [, base, mark, rest] = /^([^_^]+)([_^])(.+)$/.exec(text) ?? [];
  if (!base) return <i class="name">{text}</i>;
  return <i class="name">{base}{mark === "_" ? <sub>{rest}</sub> : <sup>{rest}</sup>}</i>;
}
