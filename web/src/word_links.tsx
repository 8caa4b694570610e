/** Source and output word by word: a word that is pointed at lights the words it looked at, or was looked at by. */
import { useSignal } from "@preact/signals";
import type { WordWeights } from "./data";
import { Bar, walk } from "./controls";
import { type Plane, numbers, plane, printed, printedPercent, row } from "./packed";
import { directionOf, quoted, Token } from "./token";

interface Pointed {
  side: "source" | "target";
  index: number;
}

export function WordLinks({ words }: { words: WordWeights }) {
  const pointed = useSignal<Pointed>({ side: "target", index: 0 });
  const { side, index } = pointed.value;
  const weights = plane(words.weights);
  const lit = side === "target" ? (words.links[index] ?? []) : lookingAt(words, index);
  const point = (to: Pointed) => (pointed.value = to);
  const at = (other: number) => (side === "target" ? index * weights.columns + other : other * weights.columns + index);
  return (
    <div class="links">
      <p class="note">Point at a word, or move with the arrow keys: the words it is linked to light up, with their share of its attention.</p>
      <Row
        side="source" words={words.source} pointed={pointed.value} lit={side === "target" ? lit : []} point={point}
        number={side === "target" ? (i) => printed(weights, at(i)) : null}
      />
      <Row
        side="target" words={words.target} pointed={pointed.value} lit={side === "source" ? lit : []} point={point}
        number={side === "source" ? (i) => printed(weights, at(i)) : null}
      />
      <p role="status" class="readout" id="links-status">{sentence(words, pointed.value, lit, weights, at)}</p>
      <Least words={words} />
    </div>
  );
}

function lookingAt(words: WordWeights, source: number): number[] {
  return words.target.map((_, i) => i).filter((i) => words.links[i]?.includes(source));
}

function sentence(
  words: WordWeights, { side, index }: Pointed, lit: number[], weights: Plane, at: (other: number) => number,
): string {
  const [own, others] = side === "target" ? [words.target, words.source] : [words.source, words.target];
  const word = quoted(own[index] ?? "");
  const shares = lit.map((i) => `${quoted(others[i] ?? "")} (${printedPercent(weights, at(i))})`);
  if (!shares.length) return side === "target" ? `${word} is linked to no source word.` : `No output word is linked to ${word}.`;
  return side === "target" ? `${word} looked at ${shares.join(", ")}.` : `${word} was looked at by ${shares.join(", ")}.`;
}

interface RowProps {
  side: "source" | "target";
  words: string[];
  pointed: Pointed;
  lit: number[];
  point: (to: Pointed) => void;
  number: ((index: number) => string) | null;
}

function Row({ side, words, pointed, lit, point, number }: RowProps) {
  const name = side === "source" ? "Source words" : "Output words";
  const active = pointed.side === side ? pointed.index : 0;
  return (
    <div class="words" id={`${side}-words`} role="group" aria-label={name} onKeyDown={(event) => walk(event, "button")}>
      <span class="side" aria-hidden="true">{side === "source" ? "Source" : "Output"}</span>
      <div dir={directionOf(words)}>{words.map((word, i) => {
        const here = pointed.side === side && i === pointed.index;
        return (
          <button
            type="button" class={`word ${here ? "here" : ""} ${lit.includes(i) ? "lit" : ""}`} tabIndex={i === active ? 0 : -1}
            aria-pressed={here} onFocus={() => point({ side, index: i })} onPointerEnter={() => point({ side, index: i })}
          >
            <Token text={word} />
            <small>{number ? number(i) : "\u00a0"}</small>
          </button>
        );
      })}</div>
    </div>
  );
}

function Least({ words }: { words: WordWeights }) {
  return (
    <p>
      Looked at least of all: <strong id="least-covered"><Token text={words.source[words.least] ?? ""} /></strong>, with a coverage
      of {printed(row(words.coverage), words.least)}.{words.dropped && " Was it dropped?"}
    </p>
  );
}

export function Coverage({ words }: { words: WordWeights }) {
  const coverage = row(words.coverage);
  const shares = numbers(words.coverage).map((one) => one ?? 0);
  const most = Math.max(1, ...shares);
  return (
    <section aria-labelledby="coverage-heading">
      <h3 id="coverage-heading">Coverage: how much each source word was looked at in all</h3>
      <table class="bars" id="coverage">
        <caption class="unseen">Coverage of each source word</caption>
        <thead class="unseen"><tr><th scope="col">word</th><th scope="col">bar</th><th scope="col">coverage</th></tr></thead>
        <tbody>
          {words.source.map((word, i) => (
            <tr class={i === words.least ? "least" : ""}>
              <th scope="row"><Token text={word} />{i === words.least && <span class="tag">least</span>}</th>
              <td class="wide"><Bar share={(shares[i] ?? 0) / most} /></td>
              <td>{printed(coverage, i)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
