/** The live page's form: another text, and what it should be compared with. */
import { useEffect, useRef } from "preact/hooks";
import { isFilled, onCtrlEnter } from "./controls";
import type { LookRequest, PageData } from "./data";
import { kindOf } from "./kind";
import { asked, busy, look as askFor, page } from "./page";
import { go, screen } from "./route";

const VERBS = { translate: "Translate", write: "Write on", fill: "Fill the masks", read: "Read" };
const WIDEST = 32; // beam that the server searches with

export function Ask({ data }: { data: PageData }) {
  const form = useRef<HTMLFormElement>(null);
  const was = asked.value;
  const kind = kindOf(data);
  // What was typed stays until something else was asked.
  useEffect(() => fill(form.current!, was), [was.text, was.target, was.gold, was.beam]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!busy.value && isFilled(form.current!.elements.namedItem("text") as HTMLTextAreaElement)) void askFor(questionIn(form.current!)).then(showMasks);
  };
  return (
    <form ref={form} class="ask" aria-busy={busy.value} onSubmit={submit} onKeyDown={onCtrlEnter(submit)}>
      <label for="ask-text">Text</label>
      <textarea id="ask-text" name="text" rows={3} dir="auto" onInput={(event) => event.currentTarget.setCustomValidity("")} />
      {data.model?.task === "fill" && <p class="note">Write <code>[MASK]</code> where a word is to be filled in.</p>}
      {kind === "translate" && (
        <details open={Boolean(was.target || was.gold)}>
          <summary>Compare with a reference or a gold alignment</summary>
          <label for="ask-target">Reference translation</label>
          <textarea id="ask-target" name="target" rows={2} dir="auto" />
          <label for="ask-gold">Gold alignment, such as <code>0-0 1-2</code>, a possible link as <code>1p2</code></label>
          <input id="ask-gold" name="gold" />
        </details>
      )}
      <div class="row">
        {kind === "translate" && (
          <label class="inline">Beam width <input name="beam" type="number" min={1} max={WIDEST} /></label>
        )}
        <button type="submit" class="main" aria-disabled={busy.value}>{busy.value ? "Working…" : VERBS[kind]}</button>
        <span class="note"><kbd>Ctrl</kbd> + <kbd>Enter</kbd></span>
      </div>
    </form>
  );
}

/** A reader's form stands above its attention; what it fills in has a screen of its own. */
function showMasks(): void {
  if (page.value?.look?.kind === "fill" && screen.value === "attention") go("translate");
}

function fill(form: HTMLFormElement, { text, target = "", gold = "", beam = 5 }: LookRequest): void {
  for (const [name, value] of Object.entries({ text, target, gold, beam })) {
    const field = form.elements.namedItem(name) as HTMLInputElement | HTMLTextAreaElement | null;
    if (field) field.value = String(value);
  }
}

/** Texts as they were typed: what blanks mean is for the model's tokenizer to say. A field of blanks alone asks nothing. */
function questionIn(form: HTMLFormElement): LookRequest {
  const fields = new FormData(form);
  const field = (name: string) => String(fields.get(name) ?? "");
  const question: LookRequest = { text: field("text") };
  if (field("target").trim()) question.target = field("target");
  if (field("gold").trim()) question.gold = field("gold").trim();
  if (field("beam")) question.beam = Number(field("beam"));
  return question;
}
