/** Screen 5: attention with real numbers, stage by stage. */
import { useRef } from "preact/hooks";
import type { Arithmetic as ArithmeticData, PageData, Stage } from "./data";
import { Choice, isFilled, onCtrlEnter, Screen } from "./controls";
import { Formula } from "./formulas";
import { Matrix } from "./matrix";
import { arithmeticOf, busy } from "./page";
import { choose, text } from "./route";
import { Shuffle } from "./shuffle";
import { Terms } from "./terms";

const SOURCES = { slides: "the slides", toy: "a small toy", model: "your model" };

export function Arithmetic({ data }: { data: PageData }) {
  const all = data.arithmetic;
  const shown = all.find(({ source }) => source === text("numbers")) ?? all[0]!;
  return (
    <Screen title="Arithmetic" question="Where does each number come from?">
      {all.length > 1 && (
        <Choice
          legend="Numbers from" name="numbers" value={shown.source} chosen={(value) => choose({ numbers: value })}
          options={all.map(({ source }) => ({ value: source, label: SOURCES[source] }))}
        />
      )}
      {data.live && data.model?.takes_text && canCalculate(data) && <OwnText text={data.look?.text ?? shown.words.join(" ")} />}
      <Intro shown={shown} />
      {shown.stages.map((stage, i) => <StageView key={`${shown.source} ${stage.name} ${shown.words.join(" ")}`} stage={stage} number={i + 1} />)}
      {shown.shuffle && <Shuffle shuffle={shown.shuffle} words={shown.words} />}
    </Screen>
  );
}

/** An image is chosen on its own screen. A model without attention has no numbers of its own here; before any text was looked at, nobody knows. */
const canCalculate = ({ look, arithmetic, model }: PageData) => model?.family !== "vit" && (!look || arithmetic.some(({ source }) => source === "model"));

function Intro({ shown }: { shown: ArithmeticData }) {
  return (
    <section aria-labelledby="numbers-heading">
      <h3 id="numbers-heading">{shown.title}</h3>
      <p>{shown.note}</p>
      <p class="facts">
        <span><b>{shown.words.length}</b> {shown.counted}</span>
        <span><b>{shown.heads}</b> {shown.heads === 1 ? "head" : "heads"}</span>
        <span>width <b>{shown.width}</b></span>
        <span>width of a head <b>{shown.head_width}</b></span>
      </p>
    </section>
  );
}

function OwnText({ text: otherwise }: { text: string }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy.value || !isFilled(field.current!)) return;
    await arithmeticOf(field.current!.value);
    choose({ numbers: "model" });
  };
  return (
    <form class="ask" aria-busy={busy.value} onSubmit={submit} onKeyDown={onCtrlEnter(submit)}>
      <label for="arithmetic-text">A text for your model's own arithmetic</label>
      <textarea id="arithmetic-text" rows={2} dir="auto" ref={field} defaultValue={otherwise} onInput={(event) => event.currentTarget.setCustomValidity("")} />
      <div class="row">
        <button type="submit" class="main" aria-disabled={busy.value}>{busy.value ? "Working…" : "Calculate"}</button>
        <span class="note"><kbd>Ctrl</kbd> + <kbd>Enter</kbd></span>
      </div>
    </form>
  );
}

function StageView({ stage, number }: { stage: Stage; number: number }) {
  const heading = `stage-${stage.name}`;
  return (
    <section class="stage" aria-labelledby={heading}>
      <h3 id={heading}>{number}. {stage.title}</h3>
      <Formula matrices={stage.matrices} label={stage.title} />
      <p>{stage.sentence}</p>
      <div class="equation">
        {stage.matrices.map((matrix) => (
          <>
            {matrix.sign && <span class="sign">{matrix.sign}</span>}
            <Matrix matrix={matrix} />
          </>
        ))}
      </div>
      {stage.terms && <Terms terms={stage.terms} />}
    </section>
  );
}
