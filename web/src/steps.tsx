/** Screen 3: the output token by token: what it could have written, where it looked, what its gates did. */
import { signal } from "@preact/signals";
import type { Gate, Look, PageData, Step } from "./data";
import { Bar, Screen, Scrubber } from "./controls";
import { painted } from "./colours";
import { fixed, percent } from "./figures";
import { busy, failure, force, page } from "./page";
import { choose, whole } from "./route";
import { Scroll } from "./scroll";
import { directionOf, quoted, Token, Tokens } from "./token";

/** What forcing came to, said while the look that came of it is shown. */
const forcing = signal<{ look: Look; sentence: string } | null>(null);

export function Steps({ data }: { data: PageData }) {
  const look = data.look!;
  const count = look.steps.length;
  const at = whole("step", 1, 1, count) - 1; // people count from 1
  const step = look.steps[at]!;
  const pieces = piecesOf(look);
  const place = look.opening + at;
  return (
    <Screen title="Steps" question="How sure was it of each token, and what else could it have written?">
      <Scrubber
        id="step" label={`Step ${at + 1} of ${count}: ${place === 1 ? "1 token" : `${place} tokens`} ${givenIn(look) > 0 ? "" : "written "}before it`}
        value={at} most={count - 1} moved={(next) => choose({ step: next + 1 })}
        said={`step ${at + 1}: after “${pieces.slice(0, place).join(" ")}” it writes ${quoted(pieces[place] ?? "")}`}
      />
      <Line look={look} pieces={pieces} place={place} live={data.live} />
      {data.live && <p role="status" id="forcing" class="note">{forcing.value?.look === look && forcing.value.sentence}</p>}
      <div class="columns">
        <Top look={look} at={at} live={data.live} />
        <div>
          {step.looked && <Looked look={look} step={step} />}
          {(step.gates.length > 0 || step.norm !== null) && <Gates step={step} />}
        </div>
      </div>
    </Screen>
  );
}

/** The whole line: what is written at each step, after a token that stands there before any. */
function piecesOf({ given, written, steps, opening }: Look): string[] {
  return [...(given?.pieces.slice(0, opening) ?? []), ...(written?.pieces ?? steps.map(({ token }) => token))];
}

/** How many tokens of the line are the given text. */
const givenIn = ({ opening, prompt }: Look) => opening + prompt;

/** Where a token of the line comes from. What was given stands first, what was forced after it. */
function originOf(look: Look, place: number): "given" | "forced" | "written" {
  if (place < givenIn(look)) return "given";
  return place < givenIn(look) + look.forced ? "forced" : "written";
}

function Line({ look, pieces, place, live }: { look: Look; pieces: string[]; place: number; live: boolean }) {
  const given = givenIn(look);
  const mark = (from: number, to: number) => pieces.slice(from, to).map((piece, i) => (
    <span class={`piece ${originOf(look, from + i)}`}><Token text={piece} /></span>
  ));
  return (
    <>
      <p class="text line" dir={directionOf(pieces.slice(look.opening))}>
        <span id="prefix">{mark(0, place)}</span>
        <strong id="now" class="now">{mark(place, place + 1)}</strong>
        <span id="later" class="later">{mark(place + 1, pieces.length)}</span>
      </p>
      {given > 0 && (
        <p class="note" id="given">
          Underlined: {given === 1 ? "the first token is" : `the first ${given} tokens are`} the given text.
        </p>
      )}
      {look.forced > 0 && (
        <p class="note">
          Underlined twice: {forcedOnes(look)}.{" "}
          {live && <button type="button" aria-disabled={busy.value} onClick={(event) => void forceAnd(event, [], "Forcing is undone.")}>Undo forcing</button>}
        </p>
      )}
    </>
  );
}

function forcedOnes(look: Look): string {
  const which = givenIn(look) > 0 ? "next" : "first";
  const { forced } = look;
  return forced === 1 ? `the ${which} token, which was forced` : `the ${which} ${forced} tokens, held fast up to the last, which was forced`;
}

/** A token is forced after those that stood there: they are held fast. */
const isLastForced = (look: Look, at: number) => at === look.prompt + look.forced - 1;

/** The button goes with what it changes, so the keyboard goes on from the scrubber, and a line says what came of it. */
async function forceAnd(event: Event, ids: number[], sentence: string): Promise<void> {
  const button = event.currentTarget as HTMLElement;
  if (busy.value) return;
  await force(ids);
  const look = page.value?.look;
  if (failure.value || !look) return button.focus();
  forcing.value = { look, sentence: `${sentence} It writes: ${look.translation?.text || "nothing"}` };
  document.getElementById("step")?.focus();
}

function Top({ look, at, live }: { look: Look; at: number; live: boolean }) {
  const step = look.steps[at]!;
  const origin = originOf(look, look.opening + at);
  const before = look.steps.slice(look.prompt, at).map(({ id }) => id); // a forced beginning comes after the given text
  const canForce = live && origin !== "given";
  return (
    <section aria-labelledby="top-heading">
      <h3 id="top-heading">The likeliest next tokens</h3>
      <p>
        {origin === "given" ? "It was given" : "It wrote"} <Tokens pieces={[step.token]} /> with log p{" "}
        <b id="step-log-prob">{fixed(step.log_prob)}</b>{origin === "forced" && `, because it was ${isLastForced(look, at) ? "forced" : "held fast"}`}.
      </p>
      <table class="bars" id="top">
        <caption class="unseen">The likeliest tokens at step {at + 1}</caption>
        <thead class="unseen"><tr><th scope="col">token</th><th scope="col">bar</th><th scope="col">probability</th><th scope="col">what became of it</th></tr></thead>
        <tbody>
          {step.top.map((one) => (
            <tr class={one.id === step.id ? "chosen" : ""}>
              <th scope="row"><Token text={one.token} /></th>
              <td class="wide"><Bar share={one.probability} /></td>
              <td>{percent(one.probability)}</td>
              <td class="left">{one.id === step.id ? <span class="tag">{origin === "forced" && !isLastForced(look, at) ? "held fast" : origin}</span> : canForce && <Force token={one.token} step={at + 1} ids={[...before, one.id]} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Force({ token, step, ids }: { token: string; step: number; ids: number[] }) {
  return (
    <button
      type="button" class="quiet" aria-label={`force ${quoted(token)}`} aria-disabled={busy.value}
      onClick={(event) => void forceAnd(event, ids, `${quoted(token)} is forced at step ${step}.`)}
    >
      force
    </button>
  );
}

function Looked({ look, step }: { look: Look; step: Step }) {
  const pieces = (look.source ?? look.given)?.pieces ?? [];
  const most = Math.max(...step.looked!, 1e-9);
  return (
    <section aria-labelledby="looked-heading">
      <h3 id="looked-heading">Where it looked</h3>
      <ul class="strip" id="looked">
        {step.looked!.map((share, i) => (
          <li style={painted(share / most)}><Token text={pieces[i] ?? String(i + 1)} /><small>{fixed(share)}</small></li>
        ))}
      </ul>
      <p class="note">Shares of this step's attention; together they are 1.</p>
    </section>
  );
}

function Gates({ step }: { step: Step }) {
  return (
    <section aria-labelledby="gates-heading">
      <h3 id="gates-heading">Gates</h3>
      {step.norm !== null && <p>Length of the hidden state: <b id="norm">{fixed(step.norm)}</b></p>}
      {step.gates.length > 0 && (
        <Scroll label="Gates">
          <table class="bars" id="gates">
            <thead><tr><th scope="col">gate</th><th scope="col" colSpan={2}>mean</th><th scope="col">closed</th><th scope="col">open</th></tr></thead>
            <tbody>{step.gates.map((gate) => <GateRow gate={gate} />)}</tbody>
          </table>
        </Scroll>
      )}
      {step.gates.length > 0 && <p class="note">Closed: share of units below 0.1. Open: above 0.9.</p>}
    </section>
  );
}

function GateRow({ gate }: { gate: Gate }) {
  return (
    <tr>
      <th scope="row">{gate.name} <span class="note">layer {gate.layer}</span></th>
      <td class="wide"><Bar share={gate.mean} /></td>
      <td>{fixed(gate.mean)}</td>
      <td>{percent(gate.closed, 1)}</td>
      <td>{percent(gate.open, 1)}</td>
    </tr>
  );
}
