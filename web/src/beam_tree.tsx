/** A beam's tree from left to right, one column for each step; the keyboard walks it as a tree. */
import { useSignal } from "@preact/signals";
import { type HierarchyPointLink, type HierarchyPointNode, stratify } from "d3-hierarchy";
import { useMemo, useRef } from "preact/hooks";
import type { BeamNode } from "./data";
import { fixed, ordinal } from "./figures";
import { Scroll } from "./scroll";
import { quoted, Token } from "./token";

type Placed = HierarchyPointNode<BeamNode>;

const BOX = { width: 164, height: 46 };
const COLUMN = BOX.width + 34;
const ROW = BOX.height + 8;
const MARGIN = 10;

export function BeamTree({ nodes, label }: { nodes: BeamNode[]; label: string }) {
  const root = useMemo(() => layout(nodes), [nodes]);
  const all = root.descendants();
  const size = {
    width: `${(root.height + 1) * COLUMN}px`,
    height: `${Math.max(...all.map(({ x }) => x)) + BOX.height + 2 * MARGIN}px`,
  };
  const active = useSignal(nodes[0]!.id);
  const here = all.find(({ data }) => data.id === active.value) ?? root;
  const container = useRef<HTMLDivElement>(null);
  const enter = (id: number) => {
    active.value = id;
    container.current!.querySelector<HTMLElement>(`[data-id="${id}"]`)!.focus();
  };
  const key = (event: KeyboardEvent) => {
    const next = neighbour(event.key, all, here);
    if (!next) return;
    event.preventDefault();
    enter(next.data.id);
  };
  return (
    <>
      <Scroll class="beam" label={label}>
        <div class="tree" style={size} ref={container} role="tree" aria-label={label} onKeyDown={key}>
          <svg aria-hidden="true" style={size}>{root.links().map((link) => <Link link={link} />)}</svg>
          {all.map((node) => <Node node={node} active={node === here} enter={enter} />)}
        </div>
      </Scroll>
      <p role="status" class="readout">{said(here.data)}</p>
      <p class="note">Keys: <kbd>→</kbd> into a branch, <kbd>←</kbd> back, <kbd>↑</kbd> <kbd>↓</kbd> within a step, <kbd>End</kbd> to the output.</p>
    </>
  );
}

/** A column for each step, filled from the top; the way to the output is the top row, as its nodes come first.
 *  A tidy tree would put parents in the middle of their children, and the way to the output would climb a hill. */
function layout(nodes: BeamNode[]): Placed {
  const root = stratify<BeamNode>().id(({ id }) => String(id)).parentId(({ parent }) => (parent === null ? null : String(parent)))(nodes);
  root.sort((a, b) => Number(b.data.best) - Number(a.data.best) || b.data.log_prob - a.data.log_prob);
  const filled: number[] = []; // rows of each column
  root.eachBefore((node) => {
    const row = filled[node.depth] ?? 0;
    filled[node.depth] = row + 1;
    Object.assign(node, { x: row * ROW, y: node.depth * COLUMN });
  });
  return root as Placed;
}

function neighbour(key: string, all: Placed[], at: Placed): Placed | undefined {
  const sameStep = all.filter(({ depth }) => depth === at.depth).sort((a, b) => a.x - b.x);
  switch (key) {
    case "ArrowRight": return at.children?.find(({ data }) => data.best) ?? at.children?.[0];
    case "ArrowLeft": return at.parent ?? undefined;
    case "ArrowUp": return sameStep[sameStep.indexOf(at) - 1];
    case "ArrowDown": return sameStep[sameStep.indexOf(at) + 1];
    case "Home": return all[0];
    case "End": return all.filter(({ data }) => data.best).at(-1);
    default: return undefined;
  }
}

function Link({ link: { source, target } }: { link: HierarchyPointLink<BeamNode> }) {
  const [x0, y0] = [source.y + BOX.width + MARGIN, source.x + BOX.height / 2 + MARGIN];
  const [x1, y1] = [target.y + MARGIN, target.x + BOX.height / 2 + MARGIN];
  const middle = (x0 + x1) / 2;
  return <path class={`${target.data.state} ${target.data.best ? "best" : ""}`} d={`M${x0},${y0}C${middle},${y0} ${middle},${y1} ${x1},${y1}`} />;
}

function Node({ node, active, enter }: { node: Placed; active: boolean; enter: (id: number) => void }) {
  const { data } = node;
  const siblings = node.parent?.children ?? [node];
  const place = { left: `${node.y + MARGIN}px`, top: `${node.x + MARGIN}px`, width: `${BOX.width}px`, height: `${BOX.height}px` };
  return (
    <div
      role="treeitem" data-id={data.id} class={`node ${data.state} ${stopped(data) ? "stopped" : ""} ${data.best ? "best" : ""}`} style={place}
      aria-level={node.depth + 1} aria-posinset={siblings.indexOf(node) + 1} aria-setsize={siblings.length}
      aria-selected={active} aria-expanded={node.children ? true : undefined} aria-label={said(data)}
      tabIndex={active ? 0 : -1} onClick={() => enter(data.id)}
    >
      <span class="name"><Token text={data.token} />{data.rank !== null && <b class="rank">{ordinal(data.rank)}</b>}</span>
      <small>log p {fixed(data.log_prob, 2)} · score {fixed(data.score, 2)}</small>
    </div>
  );
}

/** Kept, and yet without children: the search ended before they were tried, or none of them was good enough. */
const stopped = ({ state, reason }: BeamNode) => state === "kept" && reason !== "";

function said(node: BeamNode): string {
  const parts = [quoted(node.token), node.step > 0 ? `step ${node.step}` : "before step 1", `log p ${fixed(node.log_prob)}`, `score ${fixed(node.score)}`];
  const rank = node.rank === null ? "" : `, ${ordinal(node.rank)} of the n-best`;
  const reason = node.reason ? `: ${node.reason}` : "";
  const best = node.best ? ", on the way to the output" : "";
  return `${parts.join(", ")}, ${node.state}${rank}${best}${reason}`;
}
