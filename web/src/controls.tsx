/** The small controls that several screens share. */
import type { ComponentChildren } from "preact";
import { painted } from "./colours";
import { width } from "./figures";

export interface Option {
  value: string;
  label: string;
  off?: boolean;
}

interface ChoiceProps {
  legend: string;
  name: string;
  value: string;
  options: Option[];
  chosen: (value: string) => void;
}

/** A few things of which one holds: radio buttons, drawn as one strip. */
export function Choice({ legend, name, value, options, chosen }: ChoiceProps) {
  return (
    <fieldset class="choice">
      <legend>{legend}</legend>
      <div>
        {options.map((option) => (
          <label class={option.off ? "off" : ""}>
            <input
              type="radio" name={name} value={option.value} checked={option.value === value} disabled={option.off}
              onChange={() => chosen(option.value)}
            />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Bar({ share }: { share: number }) {
  return <span class="bar" aria-hidden="true"><span style={width(share)} /></span>;
}

/** Ends of the colour scale, in numbers. */
export function Scale({ low, high }: { low: string; high: string }) {
  return (
    <p class="scale">
      <span>{low}</span>
      <span class="ramp" aria-hidden="true">
        {Array.from({ length: 24 }, (_, i) => <span style={{ backgroundColor: painted(i / 23).backgroundColor }} />)}
      </span>
      <span>{high}</span>
    </p>
  );
}

interface ScrubberProps {
  id: string;
  label: string;
  value: number;
  most: number;
  said: string; // what the place means, for screen readers
  moved: (value: number) => void;
}

/** A slider with a button at either end. */
export function Scrubber({ id, label, value, most, said, moved }: ScrubberProps) {
  const to = (next: number) => moved(Math.max(0, Math.min(most, next)));
  return (
    <div class="scrubber">
      <label for={id}>{label}</label>
      <div>
        <button type="button" aria-label="one step back" disabled={value === 0} onClick={() => to(value - 1)}>◀</button>
        <input
          id={id} type="range" min={0} max={most} step={1} value={value} aria-valuetext={said}
          onInput={(event) => to(event.currentTarget.valueAsNumber)}
        />
        <button type="button" aria-label="one step on" disabled={value === most} onClick={() => to(value + 1)}>▶</button>
      </div>
    </div>
  );
}

/** A screen: its heading, and the question it answers. */
export function Screen({ title, question, children }: { title: string; question: string; children: ComponentChildren }) {
  return (
    <>
      <h2 id="screen" tabIndex={-1}>{title}</h2>
      <p class="lead">{question}</p>
      {children}
    </>
  );
}

/** Whether something is written there; else the browser says at the field that it must be. */
export function isFilled(field: HTMLTextAreaElement): boolean {
  field.setCustomValidity(field.value.trim() ? "" : "Type a text first.");
  return field.reportValidity();
}

/** Ctrl + Enter in a form's text, where Enter alone begins a new line. */
export function onCtrlEnter(submit: (event: Event) => void): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
}

/** Arrow keys, Home and End among the buttons of a row. */
export function walk(event: KeyboardEvent, selector: string): void {
  const all = [...(event.currentTarget as Element).querySelectorAll<HTMLElement>(selector)];
  const at = all.indexOf(event.target as HTMLElement);
  const right = getComputedStyle(event.target as Element).direction === "rtl" ? -1 : 1; // what comes next stands there, or left
  const places: Record<string, number> = {
    ArrowLeft: at - right, ArrowUp: at - 1, ArrowRight: at + right, ArrowDown: at + 1, Home: 0, End: all.length - 1,
  };
  const next = places[event.key];
  if (at < 0 || next === undefined || !all[next]) return;
  event.preventDefault();
  all[next].focus();
}
