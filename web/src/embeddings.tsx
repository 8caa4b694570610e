/** The embeddings on their first two principal components, and the neighbours of the text's tokens. */
import { useSignal } from "@preact/signals";
import type { Embeddings as EmbeddingsData } from "./data";
import { Choice } from "./controls";
import { fixed, percent } from "./figures";
import { extent, plane, printed } from "./packed";
import { choose, text } from "./route";
import { Scroll } from "./scroll";
import { Token } from "./token";
import { useWidth } from "./width";

export function Embeddings({ embeddings }: { embeddings: EmbeddingsData }) {
  return (
    <>
      <section aria-labelledby="embeddings-heading">
        <h3 id="embeddings-heading">Embeddings</h3>
        <p>{embeddings.sentence}</p>
        <Scatter embeddings={embeddings} />
      </section>
      {embeddings.neighbours.length > 0 && <Neighbours embeddings={embeddings} />}
    </>
  );
}

interface Point {
  token: string;
  index: number;
  x: number;
  y: number;
  inText: boolean;
}

const MARGIN = 24;

function place({ tokens, points, in_text }: EmbeddingsData, width: number, height: number): Point[] {
  const all = plane(points);
  const axis = (which: number, size: number) => {
    const cells = all.cells.filter((_, i) => i % 2 === which);
    const [low, high] = extent({ ...all, cells });
    return (i: number) => MARGIN + ((cells[i]! - low) / (high - low || 1)) * (size - 2 * MARGIN);
  };
  const [x, y] = [axis(0, width), axis(1, height)];
  return tokens.map((token, index) => ({ token, index, x: x(index), y: height - y(index), inText: in_text[index] ?? false }));
}

function Scatter({ embeddings }: { embeddings: EmbeddingsData }) {
  const { element, width } = useWidth<HTMLDivElement>();
  const asTable = useSignal(false);
  const told = useSignal("");
  const height = Math.max(280, Math.min(520, width * 0.6));
  const points = width ? place(embeddings, width, height) : [];
  return (
    <figure class="chart">
      <figcaption>
        <span>First two principal components: {embeddings.shares.map((share) => percent(share, 1)).join(" and ")} of the variance</span>
        <button type="button" class="quiet" aria-pressed={asTable.value} onClick={() => (asTable.value = !asTable.value)}>
          Show as table<span class="unseen">: embeddings</span>
        </button>
      </figcaption>
      <div ref={element}>
        {asTable.value ? <Coordinates embeddings={embeddings} /> : (
          <svg class="scatter" width={width} height={height} role="img" aria-label="Tokens by their embeddings; those of the text are named">
            {points.filter(({ inText }) => !inText).map((point) => <Dot point={point} told={told} />)}
            {points.filter(({ inText }) => inText).map((point) => <Dot point={point} told={told} />)}
            <Labels points={points.filter(({ inText }) => inText)} width={width} />
          </svg>
        )}
      </div>
      <p class="readout" aria-hidden="true">{told}</p>
    </figure>
  );
}

function Dot({ point, told }: { point: Point; told: { value: string } }) {
  return (
    <circle
      class={point.inText ? "dot in-text" : "dot"} cx={point.x} cy={point.y} r={point.inText ? 6 : 3.5}
      onPointerEnter={() => (told.value = `“${point.token}”`)}
    >
      <title>{point.token}</title>
    </circle>
  );
}

/** Names beside their points, each moved up or down until it covers no other. */
function Labels({ points, width }: { points: Point[]; width: number }) {
  const taken: { x: number; y: number; width: number }[] = [];
  const free = (x: number, y: number, length: number) =>
    taken.every((one) => Math.abs(one.y - y) > 14 || x > one.x + one.width || one.x > x + length);
  return (
    <g class="labels" aria-hidden="true">
      {points.map(({ token, x, y }) => {
        const length = 8 * token.length + 6;
        const left = x + 9 + length > width ? x - 9 - length : x + 9;
        const offset = [0, 15, -15, 30, -30].find((step) => free(left, y + step, length));
        if (offset === undefined) return null;
        taken.push({ x: left, y: y + offset, width: length });
        return <text x={left < x ? x - 9 : left} y={y + offset + 4} text-anchor={left < x ? "end" : "start"}>{token}</text>;
      })}
    </g>
  );
}

function Coordinates({ embeddings }: { embeddings: EmbeddingsData }) {
  const points = plane(embeddings.points);
  return (
    <Scroll class="low" label="Embeddings, as a table">
      <table class="plain">
        <thead><tr>{["token", "first", "second", "in the text"].map((name) => <th scope="col">{name}</th>)}</tr></thead>
        <tbody>
          {embeddings.tokens.map((token, i) => (
            <tr>
              <th scope="row"><Token text={token} /></th>
              <td>{printed(points, 2 * i)}</td><td>{printed(points, 2 * i + 1)}</td>
              <td class="left">{embeddings.in_text[i] ? "yes" : ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Neighbours({ embeddings }: { embeddings: EmbeddingsData }) {
  const measure = text("measure") === "dot" ? "dot" : "cosine";
  return (
    <section aria-labelledby="neighbours-heading">
      <h3 id="neighbours-heading">Nearest neighbours</h3>
      <Choice
        legend="Measured by" name="measure" value={measure} chosen={(value) => choose({ measure: value === "dot" ? value : "" })}
        options={[{ value: "cosine", label: "cosine" }, { value: "dot", label: "dot product" }]}
      />
      <Scroll label="Nearest neighbours">
        <table class="plain" id="neighbours">
          <thead><tr><th scope="col">token</th><th scope="col">neighbours, nearest first</th></tr></thead>
          <tbody>
            {embeddings.neighbours.map((one) => (
              <tr>
                <th scope="row"><Token text={one.token} /></th>
                <td class="left">
                  {one[measure].map(({ token, value }) => <span class="neighbour"><Token text={token} /> <small>{fixed(value)}</small></span>)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}
