/** Which screens there are: those that have something to show. */
import type { FunctionComponent } from "preact";
import { Arithmetic } from "./arithmetic";
import { Attention } from "./attention";
import { Beam } from "./beam";
import type { PageData } from "./data";
import { Positions } from "./positions";
import { Steps } from "./steps";
import { Training } from "./training";
import { Translate } from "./translate";

export interface ScreenEntry {
  name: string; // in the address
  label: string;
  Content: FunctionComponent<{ data: PageData }>;
}

export function screensOf(data: PageData): ScreenEntry[] {
  const { look } = data;
  const first = { translate: "Translate", write: "Write", fill: "Fill" }[look?.kind ?? "translate"];
  const all: [boolean, ScreenEntry][] = [
    [Boolean(look ?? (data.live && data.model)), { name: "translate", label: first, Content: Translate }],
    [Boolean(look?.attention.length), { name: "attention", label: "Attention", Content: Attention }],
    [Boolean(look?.steps.length), { name: "steps", label: "Steps", Content: Steps }],
    [Boolean(look?.beams.length), { name: "beam", label: "Beam", Content: Beam }],
    [data.arithmetic.length > 0, { name: "arithmetic", label: "Arithmetic", Content: Arithmetic }],
    [Boolean(data.positions ?? data.embeddings), { name: "positions", label: "Positions", Content: Positions }],
    [Boolean(data.training), { name: "training", label: "Training", Content: Training }],
  ];
  return all.filter(([there]) => there).map(([, entry]) => entry);
}
