/** What the model does with a text: as the look says, and before there is one as its task says. */
import type { Look, PageData } from "./data";

export type Kind = Look["kind"];

const OF_TASK: Record<string, Kind> = { write: "write", fill: "fill", embed: "read", classify: "read" };

export function kindOf({ look, model }: PageData): Kind {
  return look?.kind ?? OF_TASK[model?.task ?? ""] ?? "translate";
}
