/** Screen 2 of a model that reads images: where each patch looks, on the image itself or as a matrix. */
import { useCallback } from "preact/hooks";
import type { AttentionLayer, Look, PageData, Picture } from "./data";
import { chosenHead } from "./attention";
import { type GridProps, shares } from "./cells";
import { Choice, Scale, Screen } from "./controls";
import { fixed } from "./figures";
import { Grid } from "./grid";
import { grid } from "./head_view";
import { type Plane, extent, plane, printed, printedPercent } from "./packed";
import { PatchBoard, counted, lit, placeName } from "./patch_board";
import { choose, text, whole } from "./route";
import { Thumbnails } from "./thumbnails";

export function ImageAttention({ data }: { data: PageData }) {
  const look = data.look!;
  const picture = look.image!;
  const { layers, layer, head } = chosenHead(look);
  const asked = chosenQuery(picture);
  const matrix = text("as") === "matrix";
  const onImage = useCallback((one: AttentionLayer, h: number) => rowOf(picture, one, h, asked).patches, [picture, asked]);
  return (
    <Screen title="Attention" question="Which patch looks at which, and how does the answer come to know of the image?">
      {picture.left_out && <p class="note" id="left-out">{picture.left_out}</p>}
      <p class="note">{ASKED[picture.asks]}</p>
      <div class="heads-and-grid">
        <section aria-labelledby="heads-heading">
          <h3 id="heads-heading">Every head</h3>
          <Thumbnails
            layers={layers} layer={layer} head={head} statistic="entropy" {...(matrix && !picture.left_out ? {} : { pictured: onImage })}
          />
        </section>
        <Large look={look} picture={picture} layer={layer} head={head} asked={asked} matrix={matrix} />
      </div>
    </Screen>
  );
}

const ASKED = {
  class: "The answer is read from the class token, [class]: a word of its own before all patches.",
  patches: "The answer is read from the patches, each for its own pixels. What the class token, [class], looks at in the last block goes nowhere.",
};

/** An index among the words: 0 is the class token; a segmenter's first question is its middle patch's. */
function chosenQuery({ asks, grid: [rows, columns] }: Picture): number {
  const middle = 1 + Math.floor(rows / 2) * columns + Math.floor(columns / 2);
  return whole("query", asks === "class" ? 0 : middle, 0, rows * columns);
}

interface Row {
  patches: Plane; // rows × columns
  all: Plane; // the class token's first
  query: string; // who looks
}

/** Where one word looks: by one head, or by the mean over them. Of a head that keeps one row, that one. */
function rowOf({ grid: [rows, columns], left_out }: Picture, layer: AttentionLayer, head: number | "mean", asked: number): Row {
  const words = 1 + rows * columns;
  const every = head === "mean" ? plane(layer.mean!) : plane(layer.weights, head);
  const kept = head !== "mean" && left_out !== "";
  const first = kept ? 0 : asked * words;
  const patches = { ...every, cells: every.cells.subarray(first + 1, first + words), rows, columns };
  const all = { ...every, cells: every.cells.subarray(first, first + words), rows: 1, columns: words };
  return { patches, all, query: kept ? "" : asked ? `Patch ${placeName(asked - 1, columns)}` : "The class token" };
}

interface LargeProps {
  look: Look;
  picture: Picture;
  layer: AttentionLayer;
  head: number;
  asked: number;
  matrix: boolean;
}

function Large({ look, picture, layer, head, asked, matrix }: LargeProps) {
  const mean = text("of") === "mean";
  const scores = matrix && !mean && layer.scores !== null && text("view") === "scores";
  return (
    <section aria-labelledby="head-heading" class="large">
      <h3 id="head-heading">Block {layer.number}, {mean ? "mean of its heads" : `head ${head + 1}`}</h3>
      <p class="facts">
        {!mean && <span>entropy <b id="entropy">{fixed(layer.entropy[head]!, 2)}</b> of at most {fixed(layer.most_entropy, 2)} bits</span>}
        <code>{layer.name}</code>
      </p>
      <Switches layer={layer} matrix={matrix} mean={mean} scores={scores} />
      {matrix ? <Matrix {...(mean ? meanGrid(look, layer) : grid(look, layer, head, { unit: "pieces", scores, masked: true }))} />
        : <OnImage picture={picture} layer={layer} head={mean ? "mean" : head} asked={asked} />}
      <p class="note">Keys: <kbd>[</kbd> <kbd>]</kbd> other head, <kbd>{"{"}</kbd> <kbd>{"}"}</kbd> other block; on the image arrows choose a patch, <kbd>Home</kbd> the class token.</p>
    </section>
  );
}

function Switches({ layer, matrix, mean, scores }: { layer: AttentionLayer; matrix: boolean; mean: boolean; scores: boolean }) {
  return (
    <div class="switches">
      <Choice
        legend="Show" name="as" value={matrix ? "matrix" : "image"} chosen={(value) => choose({ as: value === "matrix" ? value : "" })}
        options={[{ value: "image", label: "on the image" }, { value: "matrix", label: "as a matrix" }]}
      />
      <Choice
        legend="Whose looks" name="of" value={mean ? "mean" : "head"} chosen={(value) => choose({ of: value === "mean" ? value : "" })}
        options={[{ value: "head", label: "this head's" }, { value: "mean", label: "mean of the block's heads" }]}
      />
      {matrix && !mean && layer.scores && (
        <Choice
          legend="Numbers" name="view" value={scores ? "scores" : "weights"} chosen={(value) => choose({ view: value === "scores" ? value : "" })}
          options={[{ value: "weights", label: "softmax" }, { value: "scores", label: "scores" }]}
        />
      )}
    </div>
  );
}

function Matrix(props: GridProps) {
  const [low, high] = extent(props.plane);
  const ends = { ...props.plane, cells: Int16Array.of(props.fromZero ? Math.min(0, low) : low, high) };
  return (
    <>
      <Grid key={props.label} {...props} />
      <Scale low={printed(ends, 0)} high={printed(ends, 1)} />
    </>
  );
}

function meanGrid(look: Look, layer: AttentionLayer): GridProps {
  const numbers = plane(layer.mean!);
  const words = look.source!.pieces;
  return {
    label: `Attention weights of block ${layer.number}, mean of its heads`,
    corner: "query ↓ key →", plane: numbers, rows: words, columns: words, fromZero: true,
    say: (row, column) =>
      `“${words[row]}” (query ${row + 1}) gives ${printedPercent(numbers, row * numbers.columns + column)} of its attention to “${words[column]}” (key ${column + 1}).`,
  };
}

function OnImage({ picture, layer, head, asked }: Omit<LargeProps, "look" | "matrix" | "head"> & { head: number | "mean" }) {
  const [rows, columns] = picture.grid;
  const { patches, all, query } = rowOf(picture, layer, head, asked);
  const alone = query === ""; // only one row of this head is here: whoever else is asked, the mean of the heads answers
  const who = query || (picture.asks === "class" ? "The class token" : "The mean patch");
  const byClass = alone ? picture.asks === "class" : asked === 0;
  const share = shares(patches, true);
  const gives = (index: number) => `${who} gives ${printedPercent(all, index + 1)} of its attention to patch ${placeName(index, columns)}.`;
  const ask = (word: number) => choose({ query: word, ...(alone && !(word === 0 && byClass) ? { of: "mean" } : {}) });
  const home = () => {
    ask(0);
    document.getElementById("class-token")?.focus();
  };
  return (
    <div class="pair">
      <div>
        <div class="row">
          <button type="button" id="class-token" aria-pressed={byClass} class="quiet" onClick={home}>
            The class token asks
          </button>
          {alone && <span class="note"> Of a single head only this row is here; choose a patch to ask the mean of the heads.</span>}
        </div>
        <PatchBoard
          label="Patches: choose the one that looks" grid={picture.grid} shape={picture.size} under={picture.data} dim
          paint={(index) => lit(share(index))} say={gives} chosen={alone || asked === 0 ? null : asked - 1}
          choose={(index) => ask(index + 1)} home={home}
        />
        <p role="status" class="readout" id="looks">{summary(who, patches, all, columns)}</p>
      </div>
      <Grid
        label={`Where it looks: ${who}`} corner="row ↓ column →" plane={patches} rows={counted(rows)} columns={counted(columns)} fromZero
        say={(row, column) => gives(row * columns + column)}
      />
    </div>
  );
}

/** The most of what is printed, and what is not on the image. */
function summary(who: string, patches: Plane, all: Plane, columns: number): string {
  const best = patches.cells.indexOf(Math.max(...patches.cells));
  return `${who} looks most at patch ${placeName(best, columns)} (${printedPercent(patches, best)}), and at the class token ${printedPercent(all, 0)}.`;
}
