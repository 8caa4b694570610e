/** A line chart (uPlot), and the same numbers as a table. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { DASHES, dark, lineColour } from "./colours";
import { short } from "./figures";
import { Scroll } from "./scroll";
import { useWidth } from "./width";

export interface ChartProps {
  title: string;
  x: { name: string; values: number[] };
  series: { name: string; values: (number | null | undefined)[] }[]; // null: a gap; undefined: nothing at this place, the line goes on
}

const HEIGHT = 240;

export function Chart(props: ChartProps) {
  const asTable = useSignal(false);
  return (
    <figure class="chart">
      <figcaption>
        <span>{props.title}</span>
        <button type="button" class="quiet" aria-pressed={asTable.value} onClick={() => (asTable.value = !asTable.value)}>
          Show as table<span class="unseen">: {props.title}</span>
        </button>
      </figcaption>
      {asTable.value ? <Numbers {...props} /> : <Lines {...props} />}
    </figure>
  );
}

function Lines({ title, x, series }: ChartProps) {
  const { element, width } = useWidth<HTMLDivElement>();
  const at = useSignal<number | null>(null);
  const plot = useRef<uPlot | null>(null);
  const inDark = dark.value;
  const names = series.map(({ name }) => name).join();

  useEffect(() => {
    if (!width) return;
    const drawn = new uPlot(options(x.name, series, width, at), columns(x, series), element.current!);
    plot.current = drawn;
    return () => drawn.destroy();
  }, [width, inDark, names]);
  useEffect(() => plot.current?.setData(columns(x, series)), [x, series]);

  return (
    <>
      <div class="plot" ref={element} role="img" aria-label={`${title}, by ${x.name}; the button gives the numbers as a table`} />
      <Legend x={x} series={series} at={at.value} />
    </>
  );
}

function columns(x: ChartProps["x"], series: ChartProps["series"]): uPlot.AlignedData {
  return [x.values, ...series.map(({ values }) => values)] as uPlot.AlignedData;
}

function options(
  xName: string, series: ChartProps["series"], width: number, at: { value: number | null },
): uPlot.Options {
  const axis = {
    stroke: dark.value ? "#c8ccd4" : "#3d4450",
    grid: { stroke: dark.value ? "#333a46" : "#e4e2da", width: 1 },
    ticks: { stroke: dark.value ? "#4a5260" : "#c9c6bb", width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    scales: { x: { time: false } },
    axes: [
      { ...axis, label: xName, labelFont: axis.font, labelSize: 18, size: 32 },
      { ...axis, size: (_, labels) => widthOf(labels), values: (_, ticks) => ticks.map(short) },
    ],
    series: [{}, ...series.map(({ name }, i) => ({
      label: name, stroke: lineColour(i), dash: DASHES[i % DASHES.length]!, width: 2, points: { size: 5, fill: lineColour(i) },
    }))],
    hooks: { setCursor: [(plot) => (at.value = plot.cursor.idx ?? null)] },
  };
}

/** Room for the longest number beside the axis, its tick and the gap between. */
const widthOf = (labels: string[] | null) => 22 + 7 * Math.max(3, ...(labels ?? []).map((label) => label.length));

function Legend({ x, series, at }: Pick<ChartProps, "x" | "series"> & { at: number | null }) {
  return (
    <ul class="legend">
      {at !== null && <li>{x.name} {short(x.values[at])}</li>}
      {series.map(({ name, values }, i) => (
        <li>
          <svg width="28" height="8" aria-hidden="true">
            <line x1="0" y1="4" x2="28" y2="4" stroke={lineColour(i)} stroke-width="2.5" stroke-dasharray={DASHES[i % DASHES.length]!.join(" ")} />
          </svg>
          {name}{at !== null && values[at] !== null && values[at] !== undefined && `: ${short(values[at])}`}
        </li>
      ))}
    </ul>
  );
}

const MOST_ROWS = 200;

function Numbers({ title, x, series }: ChartProps) {
  const every = Math.ceil(x.values.length / MOST_ROWS);
  const places = x.values.map((_, i) => i).filter((i) => i % every === 0);
  return (
    <>
      {every > 1 && <p class="note">Every {every}th row of {x.values.length}.</p>}
      <Scroll class="low" label={`${title}, as a table`}>
        <table class="plain">
          <thead>
            <tr><th scope="col">{x.name}</th>{series.map(({ name }) => <th scope="col">{name}</th>)}</tr>
          </thead>
          <tbody>
            {places.map((i) => (
              <tr><th scope="row">{short(x.values[i])}</th>{series.map(({ values }) => <td>{short(values[i])}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    </>
  );
}
