/** Keys that work everywhere, and the list of them. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { changeHead } from "./attention";
import type { PageData } from "./data";
import { go } from "./route";
import { type ScreenEntry, currentOf } from "./screens";

/** Single keys disturb those who speak to their computer; they can be switched off. */
const listening = signal(true);

const KEYS: [string[], string][] = [
  [["1", "…", "7"], "go to a screen"],
  [["[", "]"], "Attention: other head"],
  [["{", "}"], "Attention: other block"],
  [["↑", "↓", "←", "→"], "move within a grid, an image, a tree, a row of words or of heads"],
  [["Home", "End"], "first and last cell of a row; with Ctrl of the grid"],
  [["Page Up", "Page Down"], "five rows up or down in a grid"],
  [["Ctrl", "Enter"], "send the text (live page)"],
  [["?"], "this list"],
];

const dialog = () => document.getElementById("keys") as HTMLDialogElement;

export function useShortcuts(data: PageData, screens: ScreenEntry[]): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isCommand(event) || !listening.value || isTyping(event.target)) return;
      const current = currentOf(data, screens);
      const chosen = screens[Number(event.key) - 1];
      if (event.key === "?") dialog().showModal();
      else if (chosen) go(chosen.name);
      else if (current?.name === "attention" && "[]{}".includes(event.key)) changeHead(data.look!, event.key);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
}

/** On many keyboards [ and { need AltGr, which some systems report as Ctrl + Alt. */
function isCommand(event: KeyboardEvent): boolean {
  return (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches("textarea, select, input:not([type=radio], [type=range], [type=checkbox])");
}

export function Keys() {
  return (
    <>
      <button type="button" class="quiet" onClick={() => dialog().showModal()}>Keys <kbd>?</kbd></button>
      <dialog id="keys" aria-labelledby="keys-heading">
        <h2 id="keys-heading">Keys</h2>
        <dl>
          {KEYS.map(([keys, meaning]) => (
            <div><dt>{keys.map((key) => <kbd>{key}</kbd>)}</dt><dd>{meaning}</dd></div>
          ))}
        </dl>
        <p>
          <label class="inline">
            <input type="checkbox" checked={listening.value} onChange={(event) => (listening.value = event.currentTarget.checked)} />{" "}
            Single keys work
          </label>
        </p>
        <form method="dialog"><button type="submit" class="main" autofocus>Close</button></form>
      </dialog>
    </>
  );
}
