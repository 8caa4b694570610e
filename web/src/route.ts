/** The address holds the state: #attention?layer=3&head=2. */
import { signal } from "@preact/signals";

export const screen = signal("");
export const parameters = signal(new URLSearchParams());

const left = new Map<string, string>(); // how each screen was left, so that coming back finds it again

function read(): void {
  const [name = "", query = ""] = location.hash.slice(1).split("?");
  screen.value = name;
  parameters.value = new URLSearchParams(query);
  left.set(name, query);
}

export function followAddress(): void {
  read();
  addEventListener("hashchange", read);
}

export function link(name: string): string {
  const query = left.get(name);
  return query ? `#${name}?${query}` : `#${name}`;
}

/** Go to a screen as a click on its link would. */
export function go(name: string): void {
  location.hash = link(name);
}

/** An address without a screen, or with one that is not there, becomes that of the screen shown. */
export function settle(name: string): void {
  if (screen.value === name) return;
  history.replaceState(null, "", link(name));
  read();
}

/** Change parts of the state in place; "" takes one out. The browser's history stays short. */
export function choose(changes: Record<string, string | number>): void {
  const next = new URLSearchParams(parameters.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") next.delete(name);
    else next.set(name, String(value));
  }
  const query = next.toString();
  left.set(screen.value, query);
  history.replaceState(null, "", query ? `#${screen.value}?${query}` : `#${screen.value}`);
  parameters.value = next;
}

export function text(name: string, otherwise = ""): string {
  return parameters.value.get(name) ?? otherwise;
}

/** A whole number from the address, kept between both ends. */
export function whole(name: string, otherwise: number, least: number, most: number): number {
  const value = Number.parseInt(parameters.value.get(name) ?? "", 10);
  return Math.max(least, Math.min(most, Number.isNaN(value) ? otherwise : value));
}
