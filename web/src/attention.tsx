/** Screen 2: who looks at whom, in every head of every block. */
import type { AttentionLayer, Gold, Look, PageData } from "./data";
import { Ask } from "./ask";
import { Choice, Scale, Screen } from "./controls";
import { fixed } from "./figures";
import { Grid } from "./grid";
import { type View, grid } from "./head_view";
import { extent, printed } from "./packed";
import { choose, text, whole } from "./route";
import { Thumbnails } from "./thumbnails";

const KINDS = {
  encoder: "Encoder",
  decoder: "Decoder (masked)",
  cross: "Cross: output looks at source",
} as const;
type Kind = AttentionLayer["kind"];

export function Attention({ data }: { data: PageData }) {
  const look = data.look!;
  const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => look.attention.some((layer) => layer.kind === kind));
  const { kind, layers, layer, head } = chosenHead(look);
  const statistic = layer.aer && text("statistic") === "aer" ? "aer" : "entropy";
  return (
    <Screen title="Attention" question={`Which ${kinds.includes("cross") ? "word looks at which, and which head aligns" : "word looks at which, in which head"}?`}>
      {data.live && look.kind === "read" && <Ask data={data} />}
      {kinds.length > 1 && (
        <Choice
          legend="Which attention" name="kind" value={kind} options={kinds.map((value) => ({ value, label: KINDS[value] }))}
          chosen={(value) => choose({ kind: value, layer: "", head: "" })}
        />
      )}
      {look.gold && <Best look={look} />}
      <div class="heads-and-grid">
        <section aria-labelledby="heads-heading">
          <h3 id="heads-heading">Every head</h3>
          <Thumbnails layers={layers} layer={layer} head={head} statistic={statistic} />
        </section>
        <Large look={look} layer={layer} head={head} />
      </div>
    </Screen>
  );
}

/** The head that the address names: layer and head count from 1. */
export function chosenHead(look: Look) {
  const wanted = text("kind", look.attention.some(({ kind }) => kind === "cross") ? "cross" : look.attention[0]!.kind);
  const found = look.attention.filter((layer) => layer.kind === wanted);
  const layers = found.length ? found : look.attention.filter((layer) => layer.kind === look.attention[0]!.kind);
  const number = whole("layer", layers[0]!.number, 1, Infinity);
  const layer = layers.find((one) => one.number === number) ?? layers[0]!;
  const head = whole("head", 1, 1, layer.entropy.length) - 1;
  return { kind: layer.kind, layers, layer, head };
}

/** [ and ] change the head, { and } the block. On an image a head comes in place of the mean of its block's. */
export function changeHead(look: Look, key: string): void {
  const { layers, layer, head } = chosenHead(look);
  const around = (value: number, size: number) => (value + size) % size;
  const heads = layer.entropy.length;
  if (key === "[") choose({ head: around(head - 1, heads) + 1, of: "" });
  if (key === "]") choose({ head: around(head + 1, heads) + 1, of: "" });
  const at = layers.indexOf(layer);
  if (key === "{") choose({ layer: layers[around(at - 1, layers.length)]!.number });
  if (key === "}") choose({ layer: layers[around(at + 1, layers.length)]!.number });
}

function Best({ look }: { look: Look }) {
  const { best } = look.gold!;
  const layer = look.attention[best.layer]!;
  const jump = () => choose({ kind: layer.kind, layer: layer.number, head: best.head + 1, unit: "words", statistic: "aer", view: "" });
  return (
    <p class="verdict" id="best-head">
      Best aligned: <strong>block {layer.number}, head {best.head + 1}</strong>, alignment error rate {fixed(best.aer)}.{" "}
      <button type="button" onClick={jump}>Show this head</button>
    </p>
  );
}

function Large({ look, layer, head }: { look: Look; layer: AttentionLayer; head: number }) {
  const view: View = {
    unit: text("unit") === "words" ? "words" : "pieces",
    scores: text("view") === "scores" && text("unit") !== "words",
    masked: text("mask") !== "off" || text("unit") === "words",
  };
  const drawn = grid(look, layer, head, view);
  const [low, high] = extent(drawn.plane);
  const ends = { ...drawn.plane, cells: Int16Array.of(drawn.fromZero ? Math.min(0, low) : low, high) };
  return (
    <section aria-labelledby="head-heading" class="large">
      <h3 id="head-heading">Block {layer.number}, head {head + 1}</h3>
      <p class="facts">
        <span>entropy <b id="entropy">{fixed(layer.entropy[head]!, 2)}</b> of at most {fixed(layer.most_entropy, 2)} bits</span>
        {layer.aer && <span>AER <b id="aer">{fixed(layer.aer[head]!)}</b></span>}
        <code>{layer.name}</code>
      </p>
      <Switches layer={layer} view={view} />
      <Grid key={`${look.text}\n${look.translation?.text}`} {...drawn} />
      <Scale low={printed(ends, 0)} high={printed(ends, 1)} />
      {look.gold && layer.kind === "cross" && <GoldKey gold={look.gold} words={view.unit === "words"} />}
      <p class="note">Keys: <kbd>[</kbd> <kbd>]</kbd> other head, <kbd>{"{"}</kbd> <kbd>{"}"}</kbd> other block; arrows walk through the grid.</p>
    </section>
  );
}

function Switches({ layer, view }: { layer: AttentionLayer; view: View }) {
  const words = view.unit === "words";
  const hides = layer.unmasked !== null;
  return (
    <div class="switches">
      <Choice
        legend="Rows and columns" name="unit" value={view.unit} chosen={(value) => choose({ unit: value === "words" ? value : "" })}
        options={[{ value: "pieces", label: "subwords" }, { value: "words", label: "whole words" }]}
      />
      <Choice
        legend="Numbers" name="view" value={view.scores ? "scores" : "weights"} chosen={(value) => choose({ view: value === "scores" ? value : "" })}
        options={[{ value: "weights", label: "softmax" }, { value: "scores", label: "scores", off: words }]}
      />
      {hides && (
        <Choice
          legend="Mask" name="mask" value={view.masked ? "on" : "off"} chosen={(value) => choose({ mask: value === "off" ? value : "" })}
          options={[{ value: "on", label: "on" }, { value: "off", label: "off", off: words }]}
        />
      )}
      {words && <p class="note">Scores{hides ? " and the mask" : ""} are shown for subwords.</p>}
    </div>
  );
}

function GoldKey({ gold, words }: { gold: Gold; words: boolean }) {
  if (gold.of === "reference") return <p class="note" id="gold-of">Gold alignment: its links lead to the reference's words, so no cell is outlined.</p>;
  if (!words) return <p class="note">Choose whole words to see the gold alignment.</p>;
  return (
    <p class="note">
      Gold alignment: <span class="sample sure">sure</span> <span class="sample possible">possible</span>
    </p>
  );
}
