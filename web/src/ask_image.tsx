/** The live page's form for a model that reads images: another file. */
import { useRef } from "preact/hooks";
import { busy, failure, look as askFor } from "./page";

const LARGEST = 12 * 2 ** 20; // bytes that the server takes

export function AskImage() {
  const field = useRef<HTMLInputElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const file = field.current!.files?.[0];
    if (busy.value || !file) return;
    if (file.size > LARGEST) failure.value = `${file.name} has ${file.size.toLocaleString("en")} bytes, and ${LARGEST.toLocaleString("en")} are the most; make it smaller.`;
    else await askFor({ text: file.name, image: await inBase64(file) });
  };
  return (
    <form class="ask" aria-busy={busy.value} onSubmit={(event) => void submit(event)}>
      <label for="ask-image">Image, a PNG or a JPEG; it stays on this machine</label>
      <input id="ask-image" type="file" accept="image/png,image/jpeg" required ref={field} />
      <div class="row">
        <button type="submit" class="main" disabled={busy.value}>{busy.value ? "Working…" : "Look at it"}</button>
      </div>
    </form>
  );
}

/** A data URL is its kind, a comma and the bytes. */
function inBase64(file: File): Promise<string> {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}
