/** The frame around the screens: title, navigation, what went wrong, and the way back to Python. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { walk } from "./controls";
import type { PageData } from "./data";
import { Keys, useShortcuts } from "./keys";
import { busy, ended, failure, page } from "./page";
import { link, screen, settle } from "./route";
import { type ScreenEntry, currentOf, screensOf } from "./screens";
import { Scroll } from "./scroll";

export function App() {
  const data = page.value;
  if (!data) return <Waiting />;
  return <Frame data={data} />;
}

function Waiting() {
  return (
    <main>
      <h1>dragoman</h1>
      {failure.value ? <p role="alert">{failure}</p> : <p role="status">Opening…</p>}
    </main>
  );
}

function Frame({ data }: { data: PageData }) {
  const screens = screensOf(data);
  const current = currentOf(data, screens);
  useShortcuts(data, screens);
  useEffect(() => {
    if (current) settle(current.name);
    document.title = [current?.label, data.title, "dragoman"].filter(Boolean).join(" · ");
  }, [current?.name, current?.label, screen.value, data.title]);
  return (
    <>
      <a class="skip" href="#screen" onClick={skip}>Skip to the screen</a>
      <header>
        <h1 dir="auto" title={data.title}>{data.title}</h1>
        <About data={data} />
      </header>
      <Navigation screens={screens} current={current} />
      <main aria-busy={busy.value}>
        {data.live && (
          <div role="status" id="server">
            {ended.value && <p class="failure">The server of this page has ended; what is shown is the last it told.</p>}
          </div>
        )}
        {failure.value && <p role="alert" class="failure">{failure}</p>}
        {current ? <current.Content data={data} /> : <p>There is nothing to show yet.</p>}
      </main>
      <Footer data={data} />
    </>
  );
}

/** The address holds the screen, so the link may not change it. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("screen")?.focus();
}

function About({ data: { model } }: { data: PageData }) {
  if (!model) return null;
  return (
    <p class="facts">
      <span>{model.name}</span>
      <span>{model.family}, {model.task}</span>
      <span>{model.shape}</span>
      <span><b>{model.parameters.toLocaleString("en")}</b> parameters</span>
    </p>
  );
}

function Navigation({ screens, current }: { screens: ScreenEntry[]; current: ScreenEntry | undefined }) {
  return (
    <nav aria-label="Screens">
      <ul onKeyDown={(event) => walk(event, "a")}>
        {screens.map((entry) => (
          <li><a href={link(entry.name)} aria-current={entry === current ? "page" : undefined}>{entry.label}</a></li>
        ))}
      </ul>
    </nav>
  );
}

function Footer({ data }: { data: PageData }) {
  return (
    <footer>
      {data.python && <Python lines={data.python} />}
      <p class="facts">
        <span>dragoman {data.version}</span>
        {data.live && <a href="/save" download>Save as HTML</a>}
        <Keys />
      </p>
    </footer>
  );
}

function Python({ lines }: { lines: string }) {
  const copied = useSignal("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(lines);
      copied.value = "Copied.";
    } catch {
      getSelection()?.selectAllChildren(document.getElementById("python")!);
      copied.value = "Selected: copy it with Ctrl + C.";
    }
  };
  return (
    <details class="python">
      <summary>The Python that gives these numbers</summary>
      <Scroll label="Python code"><pre id="python">{lines}</pre></Scroll>
      <button type="button" onClick={() => void copy()}>Copy</button> <span role="status">{copied}</span>
    </details>
  );
}
