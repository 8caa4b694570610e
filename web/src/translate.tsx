/** Screen 1: the text, what the model made of it, and who is to blame for a mistake. */
import type { Look, PageData, Reference, Written } from "./data";
import { Ask } from "./ask";
import { Bar, Screen } from "./controls";
import { fixed, percent } from "./figures";
import { kindOf } from "./kind";
import { Scroll } from "./scroll";
import { Token, Tokens } from "./token";
import { Coverage, WordLinks } from "./word_links";

const HEADINGS = {
  translate: ["Translate", "Did it drop a word? Is it the model or the search?"],
  write: ["Write", "How does it go on, and how sure is it of that?"],
  fill: ["Fill", "What does it put in place of each mask, and how sure is it?"],
  read: ["Read", "What does it see in a text?"],
} as const;

export function Translate({ data }: { data: PageData }) {
  const { look } = data;
  const [title, question] = HEADINGS[kindOf(data)];
  return (
    <Screen title={title} question={question}>
      {data.live && <Ask data={data} />}
      {look && <Answer look={look} />}
    </Screen>
  );
}

function Answer({ look }: { look: Look }) {
  if (look.kind === "fill") return <Masks look={look} />;
  if (look.kind === "read") return <p class="note">This model has read the text; it has no attention that could be shown.</p>;
  if (!look.translation) return null;
  return (
    <>
      {look.kind === "write" ? <Continuation look={look} written={look.translation} /> : <Output look={look} written={look.translation} />}
      {look.reference && <Verdict reference={look.reference} written={look.translation} />}
      {look.translation.nbest.length > 0 && <NBest written={look.translation} />}
      {look.translation.words && <Coverage words={look.translation.words} />}
    </>
  );
}

function Output({ look, written }: { look: Look; written: Written }) {
  return (
    <section aria-labelledby="output-heading">
      <h3 id="output-heading">Source and output</h3>
      <div class="pair">
        <div><h4>Source</h4><p id="source-text" class="text" dir="auto">{look.text}</p></div>
        <div><h4>Output</h4><p id="output-text" class="text" dir="auto"><Words text={written.text} /></p></div>
      </div>
      <Badge written={written} forced={look.forced > 0 ? `the ${firstTokens(look.forced)}` : ""} />
      {written.words
        ? <WordLinks key={`${look.text}\n${written.text}`} words={written.words} />
        : written.note && <p class="note">{written.note}</p>}
    </section>
  );
}

/** Text that a model wrote, which may be none. */
function Words({ text }: { text: string }) {
  return text ? <>{text}</> : <span class="note">(nothing)</span>;
}

const firstTokens = (count: number) => (count === 1 ? "first token was forced" : `first ${count} tokens were held fast`);

function Badge({ written, forced }: { written: Written; forced: string }) {
  return (
    <p class="facts">
      <span>log p <b id="log-prob">{fixed(written.log_prob)}</b></span>
      <span>score <b>{fixed(written.score)}</b></span>
      <span>in <b>{fixed(written.seconds)}</b> s</span>
      {forced && <span class="tag">{forced}</span>}
    </p>
  );
}

function Continuation({ look, written }: { look: Look; written: Written }) {
  const pieces = look.written?.pieces ?? [];
  return (
    <section aria-labelledby="output-heading">
      <h3 id="output-heading">Text and continuation</h3>
      <p class="text" dir="auto">
        <span id="source-text">{look.text}</span><mark id="output-text"><Words text={written.text} /></mark>
      </p>
      <Badge written={written} forced={look.forced > 0 ? `after the given text the ${firstTokens(look.forced)}` : ""} />
      {look.forced > 0 && <p class="note">Forced: <Tokens pieces={pieces.slice(look.prompt, look.prompt + look.forced)} /></p>}
    </section>
  );
}

function Verdict({ reference, written }: { reference: Reference; written: Written }) {
  const names = { "search error": "Search error", "model error": "Model error", same: "The same", unwritable: "cannot be judged" };
  return (
    <section class="verdict" aria-labelledby="verdict-heading">
      <h3 id="verdict-heading">Against the reference: <span id="verdict">{names[reference.verdict]}</span></h3>
      <p>{reference.sentence}</p>
      <Scroll label="Output and reference">
        <table class="plain">
          <thead>
            <tr><td /><th scope="col">text</th><th scope="col">log p</th><th scope="col">score</th></tr>
          </thead>
          <tbody>
            <tr><th scope="row">output</th><td dir="auto"><Words text={written.text} /></td><td>{fixed(written.log_prob)}</td><td>{fixed(written.score)}</td></tr>
            <tr><th scope="row">reference</th><td dir="auto">{reference.text}</td><td>{fixed(reference.log_prob)}</td><td>{fixed(reference.score)}</td></tr>
          </tbody>
        </table>
      </Scroll>
      <p class="facts"><span>BLEU <b>{fixed(reference.bleu, 1)}</b></span><span>chrF <b>{fixed(reference.chrf, 1)}</b></span></p>
    </section>
  );
}

function NBest({ written }: { written: Written }) {
  return (
    <section aria-labelledby="nbest-heading">
      <h3 id="nbest-heading">The best that the search found</h3>
      <Scroll label="n-best list">
        <table class="plain" id="nbest">
          <thead><tr><th scope="col">rank</th><th scope="col">text</th><th scope="col">score</th><th scope="col">log p</th></tr></thead>
          <tbody>
            {written.nbest.map((one, i) => (
              <tr><th scope="row">{i + 1}</th><td dir="auto"><Words text={one.text} /></td><td>{fixed(one.score)}</td><td>{fixed(one.log_prob)}</td></tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </section>
  );
}

function Masks({ look }: { look: Look }) {
  return (
    <section aria-labelledby="output-heading">
      <h3 id="output-heading">The masks</h3>
      <p class="text" dir="auto" id="source-text">{look.text}</p>
      {look.masks.map((mask, i) => (
        <div class="mask">
          <h4>Mask {i + 1} <span class="note">(piece {mask.place + 1} of {look.source?.pieces.length})</span></h4>
          <table class="bars texts">
            <caption class="unseen">Candidates for mask {i + 1}</caption>
            <thead class="unseen"><tr><th scope="col">token</th><th scope="col">bar</th><th scope="col">probability</th><th scope="col">text</th></tr></thead>
            <tbody>
              {mask.candidates.map((candidate) => (
                <tr>
                  <th scope="row"><Token text={candidate.token} /></th>
                  <td class="wide"><Bar share={candidate.probability} /></td>
                  <td>{percent(candidate.probability)}</td>
                  <td class="left" dir="auto">{candidate.text}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ))}
    </section>
  );
}
