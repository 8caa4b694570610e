/** The page's data, and the server's answers while it is live. */
import { batch, signal } from "@preact/signals";
import type { Answer, Arithmetic, Look, LookRequest, PageData, Training } from "./data";

export const page = signal<PageData | null>(null);
export const busy = signal(false);
export const failure = signal("");

/** What the look shown was asked with; a token is forced within the same question. */
export const asked = signal<LookRequest>({ text: "" });

/** Whether the server that was followed is gone. */
export const ended = signal(false);

export async function open(): Promise<void> {
  const saved = document.getElementById("data");
  await answered(async () => {
    const data = saved ? (JSON.parse(saved.textContent ?? "") as PageData) : await get<PageData>("/api/page");
    show(data);
    if (data.live && data.training && !data.training.finished) void followTraining(data.training);
  });
}

function show(data: PageData): void {
  batch(() => {
    page.value = data;
    asked.value = questionOf(data.look);
  });
}

function questionOf(look: Look | null): LookRequest {
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
    const answer = await post<Answer>("/api/look", question);
    batch(() => {
      asked.value = { ...questionOf(answer.look), ...question };
      page.value = { ...page.value!, ...answer };
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

// ── a run in training ───────────────────────────────────────────────────────────────────

const PAUSE = 2000; // milliseconds between two questions
const PATIENCE = 3; // questions without an answer, one after the other

/** Ask again and again. A validation saves a model, with which everything on the page is new. */
async function followTraining(first: Training): Promise<void> {
  let known = first; // as of the whole page that is shown
  let failed = 0;
  while (!known.finished) {
    await new Promise((wake) => setTimeout(wake, PAUSE));
    try {
      const training = await get<Training | null>("/api/training");
      if (training) page.value = { ...page.value!, training: withAttention(training, page.value!.training) };
      if (training && isNewer(training, known)) known = (await openAnew()) ?? known;
      failed = 0;
    } catch (mistake) {
      failed += 1;
      if (failed < PATIENCE) continue;
      if (mistake instanceof NoAnswer) ended.value = true;
      else failure.value = messageOf(mistake);
      return;
    }
  }
}

const isNewer = (training: Training, known: Training) =>
  training.finished || training.validations.step.length > known.validations.step.length;

/** Nothing is replaced under the hands of someone who asks meanwhile: then it is left for the next time. */
async function openAnew(): Promise<Training | null> {
  const before = page.value!.look;
  if (busy.value) return null;
  const data = await get<PageData>("/api/page");
  if (busy.value || page.value!.look !== before) return null;
  show(data);
  return data.training;
}

/** The curves come without the pictures of attention; those that are there stay. */
function withAttention(training: Training, shown: Training | null): Training {
  const flips = training.flips.map((flip) => {
    const old = shown?.flips.find(({ step }) => step === flip.step);
    const sentences = flip.sentences.map((one, i) => ({ ...one, attention: one.attention ?? old?.sentences[i]?.attention ?? null }));
    return { ...flip, sentences };
  });
  return { ...training, flips };
}

// ── questions and answers ───────────────────────────────────────────────────────────────

async function answered(ask: () => Promise<void>): Promise<void> {
  batch(() => {
    busy.value = true;
    failure.value = "";
  });
  try {
    await ask();
  } catch (mistake) {
    failure.value = messageOf(mistake);
  } finally {
    busy.value = false;
  }
}

const messageOf = (mistake: unknown) => (mistake instanceof Error ? mistake.message : String(mistake));

class NoAnswer extends Error {}

const get = <T>(path: string) => request<T>(path, {});

function post<T>(path: string, body: unknown): Promise<T> {
  return request<T>(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

async function request<T>(path: string, options: RequestInit): Promise<T> {
  const response = await fetch(path, options).catch(() => {
    throw new NoAnswer("The server does not answer. Is it still running?");
  });
  const answer = await response.json().catch(() => ({ error: `The server answered with status ${response.status}.` }));
  if (!response.ok) throw new Error(answer.error ?? `The server answered with status ${response.status}.`);
  return answer as T;
}
