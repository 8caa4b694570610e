/** The page's data, and the server's answers while it is live. */
import { batch, signal } from "@preact/signals";
import type { Arithmetic, Look, LookRequest, PageData, Training } from "./data";

export const page = signal<PageData | null>(null);
export const busy = signal(false);
export const failure = signal("");

/** What the look shown was asked with; a token is forced within the same question. */
const asked = signal<LookRequest>({ text: "" });

export async function open(): Promise<void> {
  const saved = document.getElementById("data");
  await answered(async () => {
    const data = saved ? (JSON.parse(saved.textContent ?? "") as PageData) : await get<PageData>("/api/page");
    batch(() => {
      page.value = data;
      asked.value = questionOf(data.look);
    });
    if (data.live && data.training && !data.training.finished) followTraining();
  });
}

export function questionOf(look: Look | null): LookRequest {
  if (!look) return { text: "" };
  const question: LookRequest = { text: look.text };
  if (look.reference) question.target = look.reference.text;
  if (look.gold) question.gold = look.gold.text;
  if (look.beams[0]) question.beam = look.beams[0].width;
  return question;
}

/** Ask about a text. */
export async function look(question: LookRequest): Promise<void> {
  await answered(async () => {
    const answer = await post<Look>("/api/look", question);
    batch(() => {
      asked.value = question;
      page.value = { ...page.value!, look: answer };
    });
  });
}

/** Ask again, the output beginning with these ids; none undoes the forcing. */
export function force(ids: number[]): Promise<void> {
  const { force: _, ...question } = asked.value;
  return look(ids.length ? { ...question, force: ids } : question);
}

export async function arithmeticOf(text: string): Promise<void> {
  await answered(async () => {
    const answer = await post<Arithmetic>("/api/arithmetic", { text });
    const others = page.value!.arithmetic.filter(({ source }) => source !== "model");
    page.value = { ...page.value!, arithmetic: [...others, answer] };
  });
}

function followTraining(): void {
  setTimeout(async () => {
    // A server that is gone stays gone for a moment only: ask again, and say nothing.
    const training = await get<Training>("/api/training").catch(() => page.value!.training!);
    page.value = { ...page.value!, training };
    if (!training.finished) followTraining();
  }, 2000);
}

async function answered(ask: () => Promise<void>): Promise<void> {
  batch(() => {
    busy.value = true;
    failure.value = "";
  });
  try {
    await ask();
  } catch (mistake) {
    failure.value = mistake instanceof Error ? mistake.message : String(mistake);
  } finally {
    busy.value = false;
  }
}

const get = <T>(path: string) => request<T>(path, {});

function post<T>(path: string, body: unknown): Promise<T> {
  return request<T>(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

async function request<T>(path: string, options: RequestInit): Promise<T> {
  const response = await fetch(path, options).catch(() => {
    throw new Error("The server does not answer. Is it still running?");
  });
  const answer = await response.json().catch(() => ({ error: `The server answered with status ${response.status}.` }));
  if (!response.ok) throw new Error(answer.error ?? `The server answered with status ${response.status}.`);
  return answer as T;
}
