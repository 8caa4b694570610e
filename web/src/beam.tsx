/** Screen 4: the search as a tree, or as a table. */
import type { Beam as BeamData, BeamNode, PageData } from "./data";
import { BeamTree } from "./beam_tree";
import { Choice, Screen } from "./controls";
import { fixed, ordinal } from "./figures";
import { choose, text } from "./route";
import { Scroll } from "./scroll";
import { Token } from "./token";

export function Beam({ data }: { data: PageData }) {
  const look = data.look!;
  const asTable = text("as") === "table";
  const kept = text("pruned") === "no";
  return (
    <Screen title="Beam" question="What did the search keep, what did it throw away, and why?">
      <div class="switches">
        <Choice
          legend="Show as" name="as" value={asTable ? "table" : "tree"} chosen={(value) => choose({ as: value === "table" ? value : "" })}
          options={[{ value: "tree", label: "tree" }, { value: "table", label: "table" }]}
        />
        <Choice
          legend="Pruned branches" name="pruned" value={kept ? "no" : "yes"} chosen={(value) => choose({ pruned: value === "no" ? value : "" })}
          options={[{ value: "yes", label: "shown" }, { value: "no", label: "left out" }]}
        />
      </div>
      {look.beams.map((beam, i) => {
        const nodes = kept ? beam.nodes.filter(({ state }) => state !== "pruned") : beam.nodes;
        return (
          <section aria-labelledby={`beam-${i}`}>
            <h3 id={`beam-${i}`}>Beam of width {beam.width}{i > 0 && " for comparison"}</h3>
            <Summary beam={beam} />
            {asTable ? <Table nodes={nodes} width={beam.width} /> : <BeamTree key={`${kept}`} nodes={nodes} label={`Beam of width ${beam.width}`} />}
          </section>
        );
      })}
    </Screen>
  );
}

function Summary({ beam }: { beam: BeamData }) {
  const count = (state: BeamNode["state"]) => beam.nodes.filter((node) => node.state === state).length;
  return (
    <p class="facts">
      <span><b>{count("kept") - 1}</b> kept</span>
      <span><b>{count("finished")}</b> finished</span>
      <span><b>{count("pruned")}</b> pruned</span>
    </p>
  );
}

function Table({ nodes, width }: { nodes: BeamNode[]; width: number }) {
  return (
    <Scroll class="high" label={`Beam of width ${width}, as a table`}>
      <table class="plain">
        <thead>
          <tr>{["step", "token", "log p", "score", "state", "reason"].map((name) => <th scope="col">{name}</th>)}</tr>
        </thead>
        <tbody>
          {nodes.map((node) => (
            <tr class={node.best ? "chosen" : ""}>
              <td>{node.step > 0 ? node.step : "–"}</td>
              <th scope="row"><Token text={node.token} /></th>
              <td>{fixed(node.log_prob)}</td>
              <td>{fixed(node.score)}</td>
              <td class="left">{node.state}{node.rank !== null && `, ${ordinal(node.rank)}`}{node.best && ", on the way to the output"}</td>
              <td class="left">{node.reason}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
