/** A stage's formula as MathML: what its matrices are called, and the signs between them. */
import { Fragment } from "preact";
import type { Matrix } from "./data";
import { Scroll } from "./scroll";

export function Formula({ matrices, label }: { matrices: Matrix[]; label: string }) {
  return (
    <Scroll class="formula" label={`Formula: ${label}`}>
      <math displaystyle>
        <mrow>
          {matrices.map(({ sign, name }, i) => (
            <Fragment key={i}>
              {sign ? partsOf(sign).map((part) => <mo>{part}</mo>) : i > 0 && <mspace width="2em" />}
              <Named text={name} />
            </Fragment>
          ))}
        </mrow>
      </math>
    </Scroll>
  );
}

/** ") ÷" is two signs, "softmax(S) =" five; words that follow each other stay together, and so does √40. */
function partsOf(sign: string): string[] {
  return sign.match(/\p{L}[\p{L}′″]*(?:\s+\p{L}[\p{L}′″]*)*|√?\d+(?:\.\d+)?|\S/gu) ?? [];
}

/** W_Q has a subscript, K^T a superscript. */
function Named({ text }: { text: string }) {
  const [, base, mark, rest] = /^([^_^]+)([_^])(.+)$/.exec(text) ?? [];
  if (!base) return <mi>{text}</mi>;
  return mark === "_" ? <msub><mi>{base}</mi><mi>{rest}</mi></msub> : <msup><mi>{base}</mi><mi>{rest}</mi></msup>;
}
