/** Every head of every block, small: a picture, and a statistic as colour and number. */
import { useEffect, useRef } from "preact/hooks";
import type { AttentionLayer } from "./data";
import { draw } from "./canvas_grid";
import { moved } from "./cells";
import { dark, painted } from "./colours";
import { fixed } from "./figures";
import { type Plane, plane } from "./packed";
import { choose } from "./route";
import { Scroll } from "./scroll";

export type Statistic = "entropy" | "aer";

interface Props {
  layers: AttentionLayer[];
  layer: AttentionLayer;
  head: number;
  statistic: Statistic;
  pictured?: (layer: AttentionLayer, head: number) => Plane; // instead of all its weights
}

export function Thumbnails({ layers, layer, head, statistic, pictured = allWeights }: Props) {
  const group = useRef<HTMLDivElement>(null);
  const walk = (event: KeyboardEvent) => {
    const next = moved(event, layers.indexOf(layer), head, layers.length, layer.entropy.length);
    if (!next) return;
    event.preventDefault();
    choose({ layer: layers[next[0]]!.number, head: next[1] + 1, of: "" });
    group.current!.querySelector<HTMLElement>(`[data-place="${next.join()}"]`)!.focus();
  };
  return (
    <>
      {layer.aer && <Select statistic={statistic} />}
      <Scroll class="thumbnails" label="Heads of every block">
        <div role="group" aria-label="Heads" ref={group} onKeyDown={walk}>
          {layers.map((one, i) => (
            <div class="block">
              <span class="block-number">block {one.number}</span>
              {one.entropy.map((_, h) => (
                <Thumbnail key={`${one.name} ${h}`} layer={one} head={h} place={`${i},${h}`} statistic={statistic} chosen={one === layer && h === head} pictured={pictured} />
              ))}
            </div>
          ))}
        </div>
      </Scroll>
      <p class="note">
        {statistic === "aer" ? "Below each head: its alignment error rate; less is better." : "Below each head: its entropy in bits; little means that it looks at few words."}
      </p>
    </>
  );
}

function Select({ statistic }: { statistic: Statistic }) {
  return (
    <label class="inline">
      Statistic{" "}
      <select value={statistic} onChange={(event) => choose({ statistic: event.currentTarget.value === "aer" ? "aer" : "" })}>
        <option value="entropy">entropy</option>
        <option value="aer">alignment error rate</option>
      </select>
    </label>
  );
}

interface ThumbnailProps {
  layer: AttentionLayer;
  head: number;
  place: string;
  statistic: Statistic;
  chosen: boolean;
  pictured: (layer: AttentionLayer, head: number) => Plane;
}

const allWeights = (layer: AttentionLayer, head: number) => plane(layer.weights, head);

function Thumbnail({ layer, head, place, statistic, chosen, pictured }: ThumbnailProps) {
  const value = statistic === "aer" ? layer.aer![head]! : layer.entropy[head]!;
  const share = statistic === "aer" ? value : value / (layer.most_entropy || 1);
  const said = statistic === "aer" ? `alignment error rate ${fixed(value)}` : `entropy ${fixed(value, 2)} bits`;
  return (
    <button
      type="button" class="thumbnail" data-place={place} aria-pressed={chosen} tabIndex={chosen ? 0 : -1}
      aria-label={`block ${layer.number}, head ${head + 1}, ${said}`} title={`head ${head + 1}: ${said}`}
      onClick={() => choose({ layer: layer.number, head: head + 1, of: "" })}
    >
      <Picture layer={layer} head={head} pictured={pictured} />
      <span class="statistic" style={painted(share)}>{fixed(value, 2)}</span>
    </button>
  );
}

function Picture({ layer, head, pictured }: Pick<ThumbnailProps, "layer" | "head" | "pictured">) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const inDark = dark.value;
  // Eighteen blocks do not fit on the screen: a head is decoded and drawn when it comes into view.
  // Word of it may still be under way when the screen is left: by then the reference is empty, the element is not.
  useEffect(() => {
    const picture = canvas.current!;
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry!.isIntersecting) return;
      observer.disconnect();
      draw(picture, pictured(layer, head), true);
    });
    observer.observe(picture);
    return () => observer.disconnect();
  }, [layer, head, pictured, inDark]);
  return <canvas ref={canvas} aria-hidden="true" />;
}
