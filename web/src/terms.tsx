/** One score taken apart: q · k number by number. */
import { useSignal } from "@preact/signals";
import type { Terms as TermsData } from "./data";
import { Grid } from "./grid";
import { plane, printed } from "./packed";
import { Scroll } from "./scroll";
import { Token } from "./token";

export function Terms({ terms, words }: { terms: TermsData; words: string[] }) {
  const cell = useSignal<[number, number]>([0, 0]);
  const [query, key] = cell.value;
  const sums = plane(terms.sums);
  return (
    <div class="terms">
      <h4>One cell, term by term</h4>
      <p class="note">Pick a cell with the pointer or the arrow keys.</p>
      <Grid
        label="Scores: pick a cell" corner="query ↓ key →" plane={sums} rows={words} columns={words}
        marked={(row, column) => (row === query && column === key ? "picked" : "")}
        say={(row, column) => `“${words[row]}” · “${words[column]}” = ${printed(sums, row * sums.columns + column)}`}
        picked={(row, column) => (cell.value = [row, column])}
      />
      <Expansion terms={terms} words={words} query={query} keyRow={key} />
    </div>
  );
}

interface ExpansionProps {
  terms: TermsData;
  words: string[];
  query: number;
  keyRow: number;
}

function Expansion({ terms, words, query, keyRow }: ExpansionProps) {
  const sums = plane(terms.sums);
  const [queries, keys, products] = [plane(terms.queries), plane(terms.keys), plane(terms.products, query)];
  const places = Array.from({ length: queries.columns }, (_, i) => i);
  const q = (i: number) => printed(queries, query * queries.columns + i);
  const k = (i: number) => printed(keys, keyRow * keys.columns + i);
  const total = printed(sums, query * sums.columns + keyRow);
  return (
    <>
      <p class="expansion" id="expansion">
        <span>q(<Token text={words[query] ?? ""} />) · k(<Token text={words[keyRow] ?? ""} />) =</span>{" "}
        {places.map((i) => <><span>{i > 0 && "+ "}{bracketed(q(i))} · {bracketed(k(i))}</span>{" "}</>)}
        {terms.left_out > 0 && <><span>+ … ({terms.left_out} more terms)</span>{" "}</>}
        <strong>= {total}</strong>
      </p>
      <Scroll label="The terms as a table">
        <table class="plain">
          <thead><tr><td />{places.map((i) => <th scope="col">{i + 1}</th>)}{terms.left_out > 0 && <th scope="col">others</th>}</tr></thead>
          <tbody>
            <tr><th scope="row">q</th>{places.map((i) => <td>{q(i)}</td>)}{terms.left_out > 0 && <td>…</td>}</tr>
            <tr><th scope="row">k</th>{places.map((i) => <td>{k(i)}</td>)}{terms.left_out > 0 && <td>…</td>}</tr>
            <tr><th scope="row">q · k</th>{places.map((i) => <td>{printed(products, keyRow * products.columns + i)}</td>)}{terms.left_out > 0 && <td>…</td>}</tr>
          </tbody>
        </table>
      </Scroll>
    </>
  );
}

const bracketed = (number: string) => (number.startsWith("-") ? `(${number})` : number);
