/** How alike the learned vectors of places are: one place held against all others, laid out as the image is. */
import type { Places as PlacesData } from "./data";
import { painted } from "./colours";
import { Scale } from "./controls";
import { Grid } from "./grid";
import { type Plane, plane, printed } from "./packed";
import { PatchBoard, counted, placeName } from "./patch_board";
import { choose, whole } from "./route";

export function Places({ places }: { places: PlacesData }) {
  return (
    <section aria-labelledby="places-heading">
      <h3 id="places-heading">Places on the image</h3>
      <p>{places.sentence}</p>
      {places.cosines && <Alike places={places} all={plane(places.cosines)} />}
    </section>
  );
}

function Alike({ places: { grid: [rows, columns] }, all }: { places: PlacesData; all: Plane }) {
  const count = rows * columns;
  const middle = Math.floor(rows / 2) * columns + Math.floor(columns / 2);
  const at = whole("place", middle + 1, 1, count) - 1; // people count from 1
  const cells: Plane = { ...all, cells: all.cells.subarray(at * count, (at + 1) * count), rows, columns };
  const one = 10 ** all.digits; // the cosine of a place with itself
  const share = (index: number) => (cells.cells[index]! + one) / (2 * one);
  const said = (index: number) => `Place ${placeName(at, columns)} and place ${placeName(index, columns)}: cosine ${printed(cells, index)}.`;
  return (
    <>
      <p class="note" role="status" id="place">Compared with place {placeName(at, columns)}, row and column; arrows or a click choose another.</p>
      <div class="pair">
        <div>
          <PatchBoard
            label="Places: choose the one to compare with" grid={[rows, columns]} shape={[rows, columns]} paint={(index) => painted(share(index))}
            say={said} chosen={at} choose={(index) => choose({ place: index + 1 })}
          />
          <Scale low="−1" high="1" />
        </div>
        <Grid
          label={`Cosine of place ${placeName(at, columns)} with every place`} corner="row ↓ column →" plane={cells} rows={counted(rows)}
          columns={counted(columns)} say={(row, column) => said(row * columns + column)}
        />
      </div>
    </>
  );
}
