/** The live page's form: another text, and what it should be compared with. */
import { useRef } from "preact/hooks";
import type { Look, LookRequest } from "./data";
import { busy, look as askFor, questionOf } from "./page";

const VERBS = { translate: "Translate", write: "Write on", fill: "Fill the masks" };

export function Ask({ look }: { look: Look | null }) {
  const form = useRef<HTMLFormElement>(null);
  const was = questionOf(look);
  const kind = look?.kind ?? "translate";
  const submit = (event: Event) => {
    event.preventDefault();
    if (!busy.value) void askFor(questionIn(form.current!));
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return (
    <form ref={form} class="ask" aria-busy={busy.value} onSubmit={submit} onKeyDown={key}>
      <label for="ask-text">Text</label>
      <textarea id="ask-text" name="text" rows={3} dir="auto" required defaultValue={was.text} />
      {kind === "translate" && (
        <details open={Boolean(was.target || was.gold)}>
          <summary>Compare with a reference or a gold alignment</summary>
          <label for="ask-target">Reference translation</label>
          <textarea id="ask-target" name="target" rows={2} dir="auto" defaultValue={was.target ?? ""} />
          <label for="ask-gold">Gold alignment, such as <code>0-0 1-2</code>, a possible link as <code>1p2</code></label>
          <input id="ask-gold" name="gold" defaultValue={was.gold ?? ""} />
        </details>
      )}
      <div class="row">
        {kind === "translate" && (
          <label class="inline">Beam width <input name="beam" type="number" min={1} max={64} defaultValue={String(was.beam ?? 5)} /></label>
        )}
        <button type="submit" class="main" disabled={busy.value}>{busy.value ? "Working…" : VERBS[kind]}</button>
        <span class="note"><kbd>Ctrl</kbd> + <kbd>Enter</kbd></span>
      </div>
    </form>
  );
}

function questionIn(form: HTMLFormElement): LookRequest {
  const fields = new FormData(form);
  const field = (name: string) => String(fields.get(name) ?? "").trim();
  const question: LookRequest = { text: field("text") };
  if (field("target")) question.target = field("target");
  if (field("gold")) question.gold = field("gold");
  if (field("beam")) question.beam = Number(field("beam"));
  return question;
}
