/** Screen 7: the training, curve by curve, and the dev sentences as they became better. */
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { PageData, Training as TrainingData } from "./data";
import { Chart } from "./chart";
import { Screen } from "./controls";
import { fixed, short } from "./figures";
import { FlipBook } from "./flip_book";
import { ended } from "./page";

const NAMES: Record<string, string> = { bleu: "BLEU", chrf: "chrF", macro_f1: "Macro F1", mean_iou: "Mean IoU" };

/** A score as people write it; the others are words: pixel_accuracy is Pixel accuracy. */
const written = (name: string) => NAMES[name] ?? (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll("_", " ");

export function Training({ data }: { data: PageData }) {
  const training = data.training!;
  const at = training.reports.step.at(-1) ?? 0;
  return (
    <Screen title="Training" question="Is it still learning, and what can it say by now?">
      <p class="facts" id="progress">
        <span>step <b>{at}</b> of {training.steps}</span>
        <span>{training.finished ? "finished" : data.live && !ended.value ? "running; this page follows" : "not finished"}</span>
        <span><b>{fixed(training.reports.minutes.at(-1) ?? 0, 1)}</b> minutes</span>
        <Lowest training={training} />
      </p>
      <section aria-labelledby="curves-heading">
        <h3 id="curves-heading">Curves</h3>
        <div class="charts">
          <Loss training={training} />
          {Object.entries(training.validations.scores).map(([name, values]) => (
            <Curve key={name} title={written(name)} name={written(name)} steps={training.validations.step} values={values} />
          ))}
          <Curve title="Learning rate" name="learning rate" steps={training.reports.step} values={training.reports.rate} />
          <Curve title={`Speed: ${training.counted} per second`} name={`${training.counted} per second`} steps={training.reports.step} values={training.reports.speed} />
          <Curve title="Length of the gradient" name="gradient" steps={training.reports.step} values={training.reports.gradient} />
        </div>
      </section>
      {training.flips.length > 0 && <FlipBook flips={training.flips} counted={training.counted} />}
    </Screen>
  );
}

function Lowest({ training: { validations } }: { training: TrainingData }) {
  if (!validations.loss.length) return null;
  const lowest = Math.min(...validations.loss);
  return <span>lowest validation loss <b>{short(lowest)}</b> at step {validations.step[validations.loss.indexOf(lowest)]}</span>;
}

function Loss({ training: { counted, reports, validations } }: { training: TrainingData }) {
  // The two curves have steps of their own; uPlot wants one axis, and draws through what is undefined on it.
  const [steps, trained, validated] = useMemo(
    () => uPlot.join([[reports.step, reports.loss], [validations.step, validations.loss]]) as unknown as (number | null | undefined)[][],
    [reports, validations],
  );
  const series = useMemo(() => [
    { name: "training", values: trained ?? [] },
    ...(validations.step.length ? [{ name: "validation", values: validated ?? [] }] : []),
  ], [trained, validated]);
  const x = useMemo(() => ({ name: "step", values: (steps ?? []) as number[] }), [steps]);
  return <Chart title={`Loss: mean over ${counted}`} x={x} series={series} />;
}

interface CurveProps {
  title: string;
  name: string;
  steps: number[];
  values: (number | null)[];
}

function Curve({ title, name, steps, values }: CurveProps) {
  const x = useMemo(() => ({ name: "step", values: steps }), [steps]);
  const series = useMemo(() => [{ name, values }], [name, values]);
  return values.length ? <Chart title={title} x={x} series={series} /> : null;
}
