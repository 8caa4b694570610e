/** The dev sentences, or images, at every validation: leaf through them and watch the output change. */
import type { Flip, FlipAttention } from "./data";
import { Scrubber } from "./controls";
import { Grid } from "./grid";
import { plane, printedPercent } from "./packed";
import { choose, whole } from "./route";
import { quoted } from "./token";

export function FlipBook({ flips, counted }: { flips: Flip[]; counted: string }) {
  const noun = counted === "images" ? "image" : "sentence";
  const at = whole("flip", flips.length, 1, flips.length) - 1; // people count from 1
  const flip = flips[at]!;
  return (
    <section aria-labelledby="flips-heading">
      <h3 id="flips-heading">The dev {noun}s through the training</h3>
      <Scrubber
        id="flip" label={`Validation ${at + 1} of ${flips.length}, at step ${flip.step}`} value={at} most={flips.length - 1}
        said={`validation ${at + 1}, step ${flip.step}`} moved={(next) => choose({ flip: next + 1 })}
      />
      {flip.sentences.map((sentence, i) => (
        <article class="flip" aria-label={`${noun} ${i + 1}`}>
          <dl>
            {sentence.source && <><dt>source</dt><dd dir="auto">{sentence.source}</dd></>}
            {sentence.reference && <><dt>reference</dt><dd dir="auto">{sentence.reference}</dd></>}
            <dt>output at step {flip.step}</dt><dd dir="auto" class="output">{sentence.output || "(nothing)"}</dd>
          </dl>
          {sentence.attention && <Picture attention={sentence.attention} of={`${noun} ${i + 1}`} step={flip.step} />}
        </article>
      ))}
    </section>
  );
}

function Picture({ attention: { queries, keys, weights }, of, step }: { attention: FlipAttention; of: string; step: number }) {
  const cells = plane(weights);
  const say = (row: number, column: number) =>
    `${quoted(queries[row] ?? "")} (query ${row + 1}) gives ${printedPercent(cells, row * cells.columns + column)} of its attention to ${quoted(keys[column] ?? "")} (key ${column + 1}).`;
  return <Grid label={`Attention of ${of} at step ${step}`} corner="query ↓ key →" plane={cells} rows={queries} columns={keys} fromZero say={say} />;
}
