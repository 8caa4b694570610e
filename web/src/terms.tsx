/** One score taken apart, number by number: q · k, or v · tanh(q + k). */
import { useSignal } from "@preact/signals";
import type { Terms as TermsData } from "./data";
import { Grid } from "./grid";
import { type Plane, plane, printed } from "./packed";
import { Scroll } from "./scroll";
import { quoted, Token } from "./token";

export function Terms({ terms }: { terms: TermsData }) {
  const cell = useSignal<[number, number]>([0, 0]);
  const [query, key] = cell.value;
  const { rows, columns } = terms;
  const sums = plane(terms.sums);
  const say = (row: number, column: number) =>
    `${quoted(rows[row] ?? "")} ${terms.v ? "with" : "·"} ${quoted(columns[column] ?? "")} = ${printed(sums, row * sums.columns + column)}`;
  return (
    <div class="terms">
      <h4>One cell, term by term</h4>
      <p class="note">Pick a cell with the pointer or the arrow keys.</p>
      <Grid
        label="Scores: pick a cell" corner="query ↓ key →" plane={sums} rows={rows} columns={columns} say={say}
        marked={(row, column) => (row === query && column === key ? "picked" : "")}
        picked={(row, column) => (cell.value = [row, column])}
      />
      <Expansion terms={terms} query={query} keyRow={key} />
    </div>
  );
}

interface ExpansionProps {
  terms: TermsData;
  query: number;
  keyRow: number;
}

interface Lines {
  q: string[];
  k: string[];
  v: string[] | null; // null where there is none
  table: [string, string[]][]; // a line of the table each: its name, its cells
}

/** The numbers of one cell, printed. */
function linesOf(terms: TermsData, query: number, keyRow: number): Lines {
  const row = (of: Plane, at: number) => Array.from({ length: of.columns }, (_, i) => printed(of, at * of.columns + i));
  const [q, k] = [row(plane(terms.queries), query), row(plane(terms.keys), keyRow)];
  const product = row(plane(terms.products, query), keyRow);
  if (!terms.v || !terms.hidden) return { q, k, v: null, table: [["q", q], ["k", k], ["q · k", product]] };
  const v = row(plane({ ...terms.v, shape: [1, ...terms.v.shape] }), 0);
  const hidden = row(plane(terms.hidden, query), keyRow);
  return { q, k, v, table: [["q", q], ["k", k], ["tanh(q + k)", hidden], ["v", v], ["v · tanh(q + k)", product]] };
}

function Expansion({ terms, query, keyRow }: ExpansionProps) {
  const sums = plane(terms.sums);
  const { q, k, v, table } = linesOf(terms, query, keyRow);
  const more = terms.left_out > 0;
  const [asking, found] = [<Token text={terms.rows[query] ?? ""} />, <Token text={terms.columns[keyRow] ?? ""} />];
  const term = (i: number) => (v ? `${bracketed(v[i]!)} · tanh(${q[i]} + ${bracketed(k[i]!)})` : `${bracketed(q[i]!)} · ${bracketed(k[i]!)}`);
  return (
    <>
      <p class="expansion" id="expansion">
        <span>{v ? <>v · tanh(q({asking}) + k({found}))</> : <>q({asking}) · k({found})</>} =</span>{" "}
        {q.map((_, i) => <><span>{i > 0 && "+ "}{term(i)}</span>{" "}</>)}
        {more && <><span>+ … ({terms.left_out} more terms)</span>{" "}</>}
        <strong>= {printed(sums, query * sums.columns + keyRow)}</strong>
      </p>
      <Scroll label="The terms as a table">
        <table class="plain">
          <thead><tr><td />{q.map((_, i) => <th scope="col">{i + 1}</th>)}{more && <th scope="col">others</th>}</tr></thead>
          <tbody>
            {table.map(([name, cells]) => (
              <tr><th scope="row">{name}</th>{cells.map((cell) => <td>{cell}</td>)}{more && <td>…</td>}</tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

const bracketed = (number: string) => (number.startsWith("-") ? `(${number})` : number);
