/** Screen 1 of a model that reads images: the image, what is said of it, and which parts of it that hangs on. */
import { useSignal } from "@preact/signals";
import type { Area as AreaData, Packed, PageData, Picture } from "./data";
import { AskImage } from "./ask_image";
import { shares } from "./cells";
import { Bar, Choice, Screen } from "./controls";
import { Grid } from "./grid";
import { plane, printedPercent } from "./packed";
import { PatchBoard, counted, lit, placeName } from "./patch_board";
import { choose, text } from "./route";

export function See({ data }: { data: PageData }) {
  const picture = data.look?.image;
  return (
    <Screen title="See" question="What does it see in the image, and which parts of the image does that come from?">
      {data.live && <AskImage />}
      {picture ? <Seen picture={picture} /> : <p class="note">No image has been looked at yet; choose one.</p>}
    </Screen>
  );
}

function Seen({ picture }: { picture: Picture }) {
  const [height, width] = picture.size;
  const [rows, columns] = picture.grid;
  return (
    <>
      <section aria-labelledby="answer-heading">
        <h3 id="answer-heading">Image and answer</h3>
        <div class="pair">
          <figure class="shown">
            <img id="image" src={picture.data} alt={picture.name} width={width} height={height} />
            <figcaption class="note">
              As the model reads it: {width} × {height} pixels, cut into {rows} × {columns} patches of {width / columns} × {height / rows}.
            </figcaption>
          </figure>
          {picture.told.length ? <Told picture={picture} /> : <p class="note">This model has no answer: it makes a vector of the image.</p>}
        </div>
      </section>
      {picture.area && <Area picture={picture} area={picture.area} />}
      {picture.rollout && <Rollout picture={picture} rollout={picture.rollout} />}
    </>
  );
}

function Told({ picture: { told, area } }: { picture: Picture }) {
  const what = area ? "share of the image" : told[0]!.share === null ? "value" : "probability";
  return (
    <table class="bars" id="told">
      <caption class="unseen">What the model says of the image</caption>
      <thead>
        <tr>
          <th scope="col">{told[0]!.share === null ? "number" : "label"}</th>
          {told[0]!.share !== null && <th scope="col"><span class="unseen">bar</span></th>}
          <th scope="col" class="right">{what}</th>
        </tr>
      </thead>
      <tbody>
        {told.map(({ name, value, share }) => (
          <tr>
            <th scope="row"><bdi>{name}</bdi></th>
            {share !== null && <td class="wide"><Bar share={share} /></td>}
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Rollout({ picture, rollout }: { picture: Picture; rollout: Packed }) {
  const at = useSignal<number | null>(null);
  const cells = plane(rollout);
  const share = shares(cells); // from the least to the most: they seldom differ much
  const [rows, columns] = picture.grid;
  const say = (index: number) => `Patch ${placeName(index, columns)}: ${printedPercent(cells, index)} of what reaches the class token.`;
  return (
    <section aria-labelledby="rollout-heading">
      <h3 id="rollout-heading">Through all blocks: rollout</h3>
      <p>
        How much of each patch reaches the class token, from which the answer is read: attention of all blocks multiplied, the ways around it
        included. All patches together are 100 %; light runs from the least of them to the most. It is a hint, not a proof.
      </p>
      <div class="pair">
        <div>
          <PatchBoard
            label="Rollout on the image" grid={picture.grid} shape={picture.size} under={picture.data} dim paint={(index) => lit(share(index))}
            say={say} chosen={at.value} choose={(index) => (at.value = index)}
          />
          <p role="status" class="readout">{at.value === null ? "" : say(at.value)}</p>
        </div>
        <Grid
          label="Rollout in numbers" corner="row ↓ column →" plane={cells} rows={counted(rows)} columns={counted(columns)}
          say={(row, column) => say(row * columns + column)}
        />
      </div>
    </section>
  );
}

const LAYERS = [{ value: "both", label: "labels over the image" }, { value: "image", label: "image" }, { value: "labels", label: "labels" }];

function Area({ picture, area }: { picture: Picture; area: AreaData }) {
  const at = useSignal<number | null>(null);
  const shown = text("area", "both");
  const cells = plane(area.shares);
  const [rows, columns] = picture.grid;
  const say = (index: number) => `Patch ${placeName(index, columns)}: ${area.patches[index]} on ${printedPercent(cells, index)} of it.`;
  return (
    <section aria-labelledby="area-heading">
      <h3 id="area-heading">What is where</h3>
      <p>One label for each pixel, read from the states of the patches. In the table: the commonest label of each patch.</p>
      <Choice legend="Show" name="area" value={shown} options={LAYERS} chosen={(value) => choose({ area: value === "both" ? "" : value })} />
      <div class="pair">
        <div>
          <PatchBoard
            label="Labels on the image" grid={picture.grid} shape={picture.size} say={say} chosen={at.value} choose={(index) => (at.value = index)}
            {...(shown === "labels" ? {} : { under: picture.data })}
            {...(shown === "image" ? {} : { over: { data: area.data, faint: shown === "both" } })}
          />
          <p role="status" class="readout">{at.value === null ? "" : say(at.value)}</p>
          <ul class="legend">
            {area.labels.map(({ name, colour }) => <li><span class="swatch" style={{ backgroundColor: colour }} aria-hidden="true" /><bdi>{name}</bdi></li>)}
          </ul>
        </div>
        <Grid
          label="The commonest label of each patch" corner="row ↓ column →" plane={cells} rows={counted(rows)} columns={counted(columns)} fromZero
          text={(row, column) => area.patches[row * columns + column] ?? ""} say={(row, column) => say(row * columns + column)}
        />
      </div>
    </section>
  );
}
