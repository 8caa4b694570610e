/** The words in another order: what attention makes of it without positions, and with them. */
import type { Packed, Shuffle as ShuffleData } from "./data";
import { short } from "./figures";
import { Grid } from "./grid";
import { plane, printedPercent } from "./packed";
import { choose, text } from "./route";
import { Tokens } from "./token";

export function Shuffle({ shuffle, words }: { shuffle: ShuffleData; words: string[] }) {
  const open = text("shuffle") === "yes";
  return (
    <section aria-labelledby="shuffle-heading">
      <h3 id="shuffle-heading">What positions do</h3>
      <button type="button" class="main" aria-expanded={open} onClick={() => choose({ shuffle: open ? "" : "yes" })}>
        {open ? "Put the words back" : "Shuffle the words"}
      </button>
      {open && (
        <div id="shuffled">
          <p class="text" dir="auto"><Tokens pieces={words} /> becomes <Tokens pieces={shuffle.words} /></p>
          <p>{shuffle.sentence}</p>
          <Pair title="Without positions" pair={shuffle.without} words={words} shuffled={shuffle.words} />
          <Pair title="With positions" pair={shuffle.with} words={words} shuffled={shuffle.words} />
        </div>
      )}
    </section>
  );
}

interface PairProps {
  title: string;
  pair: ShuffleData["with"];
  words: string[];
  shuffled: string[];
}

function Pair({ title, pair, words, shuffled }: PairProps) {
  return (
    <>
      <h4>{title}: largest difference after putting the words back <b>{short(pair.difference)}</b></h4>
      <div class="pair">
        <Weights label={`${title}, before`} packed={pair.before} words={words} />
        <Weights label={`${title}, shuffled`} packed={pair.after} words={shuffled} />
      </div>
    </>
  );
}

function Weights({ label, packed, words }: { label: string; packed: Packed; words: string[] }) {
  const weights = plane(packed);
  const say = (row: number, column: number) =>
    `“${words[row]}” (query ${row + 1}) gives ${printedPercent(weights, row * weights.columns + column)} of its attention to “${words[column]}” (key ${column + 1}).`;
  return (
    <div>
      <p class="note">{label}</p>
      <Grid label={label} corner="query ↓ key →" plane={weights} rows={words} columns={words} fromZero say={say} />
    </div>
  );
}
