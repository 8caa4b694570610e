/** Screen 6: how the model knows where a word stands, and what it knows of the word itself. */
import { useMemo } from "preact/hooks";
import type { Packed, PageData, Positions as PositionsData } from "./data";
import { CanvasGrid } from "./canvas_grid";
import { Chart } from "./chart";
import { Scale, Screen } from "./controls";
import { Embeddings } from "./embeddings";
import { short } from "./figures";
import { extent, integers, numbers, plane, printed } from "./packed";
import { Places } from "./places";
import { choose, text } from "./route";
import { Scroll } from "./scroll";

const TEXT = { title: "Positions and embeddings", question: "How does it know the order of the words, and which words are alike to it?" };
const IMAGE = { title: "Positions", question: "How does it know where a patch lies?" };

export function Positions({ data }: { data: PageData }) {
  const { positions, embeddings } = data;
  return (
    <Screen {...(positions?.places ? IMAGE : TEXT)}>
      {positions?.places && <Places places={positions.places} />}
      {positions && <Encoding positions={positions} />}
      {embeddings && <Embeddings embeddings={embeddings} />}
    </Screen>
  );
}

function Encoding({ positions }: { positions: PositionsData }) {
  const relative = positions.kind === "relative";
  return (
    <>
      <section aria-labelledby="positions-heading">
        <h3 id="positions-heading">Positions: {positions.kind}</h3>
        <p>{positions.sentence}</p>
        <p class="facts">
          <span>width <b>{positions.width}</b></span>
          {positions.longest !== null && <span>positions learned <b>{positions.longest}</b></span>}
        </p>
        {relative ? positions.bias && <Bias bias={positions.bias} /> : <Tables positions={positions} />}
      </section>
      {relative && (
        <section aria-labelledby="sinusoids-heading">
          <h3 id="sinusoids-heading">Sinusoids, for comparison</h3>
          <p>This model adds no vector to a token. The sinusoids here, and the curves below, are for comparison only.</p>
          <Tables positions={positions} />
        </section>
      )}
      <section aria-labelledby="curves-heading">
        <h3 id="curves-heading">{relative ? "Curves of the sinusoids" : "Curves"}</h3>
        <div class="charts">
          <Waves positions={positions} />
          <Closeness positions={positions} />
          {!relative && positions.bias && <Bias bias={positions.bias} />}
        </div>
      </section>
    </>
  );
}

function Tables({ positions }: { positions: PositionsData }) {
  return (
    <div class="pair">
      <HeatMap title="Sinusoidal encodings" packed={positions.table} />
      {positions.learned && <HeatMap title="What the model learned" packed={positions.learned} />}
    </div>
  );
}

const FIRST = 8; // rows and columns in the table

function HeatMap({ title, packed }: { title: string; packed: Packed }) {
  const table = plane(packed);
  const name = title.startsWith("Sin") ? "sinusoidal" : "learned";
  const asTable = text(name) === "table";
  const ends = { ...table, cells: Int16Array.from(extent(table)) };
  const say = (row: number, column: number) => `Position ${row}, number ${column}: ${printed(table, row * table.columns + column)}`;
  return (
    <figure class="chart">
      <figcaption>
        <span>{title}</span>
        <button type="button" class="quiet" aria-pressed={asTable} onClick={() => choose({ [name]: asTable ? "" : "table" })}>
          Show as table<span class="unseen">: {title}</span>
        </button>
      </figcaption>
      {asTable ? <FirstNumbers title={title} packed={packed} /> : (
        <>
          <p class="axes">positions ↓, numbers of the vector →</p>
          <CanvasGrid
            label={title} plane={table} rows={count(table.rows)} columns={count(table.columns)} say={say}
          />
          <Scale low={printed(ends, 0)} high={printed(ends, 1)} />
        </>
      )}
    </figure>
  );
}

const count = (length: number) => Array.from({ length }, (_, i) => String(i));

function FirstNumbers({ title, packed }: { title: string; packed: Packed }) {
  const table = plane(packed);
  const rows = count(Math.min(FIRST, table.rows));
  const columns = count(Math.min(FIRST, table.columns));
  return (
    <Scroll label={`${title}, the first numbers`}>
      <table class="plain">
        <caption>The first {rows.length} positions and {columns.length} numbers of {table.rows} × {table.columns}</caption>
        <thead><tr><th scope="col">position</th>{columns.map((column) => <th scope="col">{column}</th>)}</tr></thead>
        <tbody>
          {rows.map((row) => (
            <tr><th scope="row">{row}</th>{columns.map((column) => <td>{printed(table, Number(row) * table.columns + Number(column))}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Waves({ positions: { waves } }: { positions: PositionsData }) {
  const x = useMemo(() => {
    const longest = Math.max(0, ...waves.map(({ values }) => integers(values).length));
    return { name: "position", values: count(longest).map(Number) };
  }, [waves]);
  const series = useMemo(() => waves.map(({ dimension, wavelength, values }) => ({
    name: `number ${dimension} (wavelength ${short(wavelength)})`,
    values: numbers(values),
  })), [waves]);
  return waves.length ? <Chart title="Single numbers along the positions: waves" x={x} series={series} /> : null;
}

function Closeness({ positions: { closeness } }: { positions: PositionsData }) {
  const x = useMemo(() => ({ name: "distance", values: closeness.distances }), [closeness]);
  const series = useMemo(() => [
    { name: "sinusoidal", values: numbers(closeness.sinusoidal) },
    ...(closeness.learned ? [{ name: "learned", values: numbers(closeness.learned) }] : []),
  ], [closeness]);
  return <Chart title="PE(p) · PE(p + k) against the distance k" x={x} series={series} />;
}

function Bias({ bias }: { bias: NonNullable<PositionsData["bias"]> }) {
  const x = useMemo(() => ({ name: "distance", values: bias.distances }), [bias]);
  const series = useMemo(() => count(bias.heads.shape[0] ?? 0).map((head) => ({
    name: `head ${Number(head) + 1}`,
    values: numbers(bias.heads, Number(head)),
  })), [bias]);
  return <Chart title="Relative bias of each head by distance" x={x} series={series} />;
}
