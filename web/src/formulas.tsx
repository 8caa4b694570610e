/** The heading, the formula (MathML) and the signs between the matrices of each stage. */
import type { ComponentChildren, JSX } from "preact";
import type { StageName } from "./data";

const sub = (name: string, index: string) => <msub><mi>{name}</mi><mi>{index}</mi></msub>;
const equals = <mo>=</mo>;
const projection = (result: string) => <><mi>{result}</mi>{equals}<mi>X</mi>{sub("W", result)}</>;
const transposed = <msup><mi>K</mi><mo>⊤</mo></msup>;
const exponential = (index: string) => <msup><mi>e</mi>{sub("s", index)}</msup>;

const BODIES: Record<StageName, ComponentChildren> = {
  input: <><mi>X</mi>{equals}<mi>E</mi><mo>+</mo><mi>P</mi></>,
  queries: projection("Q"),
  keys: projection("K"),
  values: projection("V"),
  scores: <><mi>S</mi>{equals}<mi>Q</mi>{transposed}</>,
  scaled: <><msup><mi>S</mi><mo>′</mo></msup>{equals}<mfrac><mi>S</mi><msqrt>{sub("d", "k")}</msqrt></mfrac></>,
  masked: <>{sub("s", "ij")}{equals}<mo>−</mo><mi>∞</mi><mspace width="0.5em" /><mtext>where word i may not see word j</mtext></>,
  weights: (
    <>
      {sub("a", "ij")}{equals}
      <mfrac><mrow>{exponential("ij")}</mrow><mrow><munder><mo>∑</mo><mi>m</mi></munder>{exponential("im")}</mrow></mfrac>
    </>
  ),
  context: <><mi>C</mi>{equals}<mi>A</mi><mi>V</mi></>,
  concat: <><mi>C</mi>{equals}<mo>[</mo>{sub("C", "1")}<mo>;</mo>{sub("C", "2")}<mo>;</mo><mo>…</mo><mo>]</mo></>,
  output: <><mi>O</mi>{equals}<mi>C</mi>{sub("W", "O")}</>,
  residual: <><mi>Y</mi>{equals}<mi>X</mi><mo>+</mo><mi>O</mi></>,
  norm: (
    <>
      <mi>Z</mi>{equals}<mi>γ</mi><mo>⊙</mo>
      <mfrac><mrow><mi>Y</mi><mo>−</mo><mi>μ</mi></mrow><msqrt><msup><mi>σ</mi><mn>2</mn></msup><mo>+</mo><mi>ε</mi></msqrt></mfrac>
      <mo>+</mo><mi>β</mi>
    </>
  ),
};

export function Formula({ stage }: { stage: StageName }): JSX.Element {
  return <p class="formula"><math displaystyle>{BODIES[stage]}</math></p>;
}

export const TITLES: Record<StageName, string> = {
  input: "Embedding + position",
  queries: "Queries",
  keys: "Keys",
  values: "Values",
  scores: "Scores: every query with every key",
  scaled: "Divided by the root of the width",
  masked: "The mask",
  weights: "Softmax: weights",
  context: "Weights × values",
  concat: "The heads side by side",
  output: "Output projection",
  residual: "Residual: the input comes back",
  norm: "Layer norm",
};
