/** What the model does with a text: as the look says, and before there is one as its task says. */
import type { Look, PageData } from "./data";

export type Kind = Exclude<Look["kind"], "see">;

const OF_TASK: Record<string, Kind> = { write: "write", fill: "fill", embed: "read", classify: "read" };

export function kindOf({ look, model }: PageData): Kind {
  if (look && look.kind !== "see") return look.kind;
  return OF_TASK[model?.task ?? ""] ?? "translate";
}

/** Whether it is shown images in place of texts. */
export function seesImages({ look, model }: PageData): boolean {
  return look ? look.kind === "see" : model?.family === "vit";
}
