/** Which screens there are: those that have something to show. */
import type { FunctionComponent } from "preact";
import { Arithmetic } from "./arithmetic";
import { Attention } from "./attention";
import { Beam } from "./beam";
import type { PageData } from "./data";
import { ImageAttention } from "./image_attention";
import { kindOf, seesImages } from "./kind";
import { Positions } from "./positions";
import { screen } from "./route";
import { See } from "./see";
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
  const first = { translate: "Translate", write: "Write", fill: "Fill", read: "Read" }[kindOf(data)];
  // A text that was only read has its attention to show, with the form above it.
  const hasFirst = look && look.kind !== "read" ? true : data.live && data.model?.takes_text && !look?.attention.length;
  const all: [boolean, ScreenEntry][] = [
    [seesImages(data) && Boolean(look ?? data.live), { name: "see", label: "See", Content: See }],
    [Boolean(hasFirst) && !seesImages(data), { name: "translate", label: first, Content: Translate }],
    [Boolean(look?.attention.length), { name: "attention", label: "Attention", Content: look?.image ? ImageAttention : Attention }],
    [Boolean(look?.steps.length), { name: "steps", label: "Steps", Content: Steps }],
    [Boolean(look?.beams.length), { name: "beam", label: "Beam", Content: Beam }],
    [data.arithmetic.length > 0, { name: "arithmetic", label: "Arithmetic", Content: Arithmetic }],
    [Boolean(data.positions ?? data.embeddings), { name: "positions", label: "Positions", Content: Positions }],
    [Boolean(data.training), { name: "training", label: "Training", Content: Training }],
  ];
  return all.filter(([there]) => there).map(([, entry]) => entry);
}

/** The screen that the address names; else the first one, or the training where no text was looked at. */
export function currentOf(data: PageData, screens: ScreenEntry[]): ScreenEntry | undefined {
  const named = (name: string) => screens.find((entry) => entry.name === name);
  return named(screen.value) ?? (data.look ? undefined : named("training")) ?? screens[0];
}
