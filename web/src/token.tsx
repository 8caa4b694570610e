/** A token as text, never as markup. White space shows as a sign drawn by CSS, so that copying gives the token itself;
 *  where there is nothing else to read, its name stands there for those who listen. */

const SIGNS: Record<string, string> = { " ": "space", "\u00a0": "space", "\n": "newline", "\r": "newline", "\t": "tab" };

export function Token({ text }: { text: string }) {
  if (text === "") return <span class="token nothing"><Unseen text={text} /></span>;
  if (!/\s/.test(text)) return <bdi class="token">{text}<Unseen text={text} /></bdi>;
  return <bdi class="token">{text.split(/(\s)/).map((part) => visible(part))}<Unseen text={text} /></bdi>;
}

function visible(part: string) {
  return /^\s$/.test(part) ? <span class={SIGNS[part] ?? "space"}>{part}</span> : part;
}

function Unseen({ text }: { text: string }) {
  return isSilent(text) ? <span class="unseen silent">{nameOf(text)}</span> : null;
}

/** Of white space and other characters that nobody sees: nothing would be read aloud. */
const isSilent = (text: string) => /^[\s\p{C}]*$/u.test(text);

/** "space", "newline newline", "U+200B"; "nothing" for no text at all. */
function nameOf(text: string): string {
  return Array.from(text, (sign) => SIGNS[sign] ?? `U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`).join(" ") || "nothing";
}

/** A token within a sentence: in quotation marks, or by its name where they would hold nothing to read. */
export const quoted = (text: string) => (isSilent(text) ? nameOf(text) : `“${text}”`);

/** Which way a line of tokens runs: as its first letter does. Each token is an island, at which dir="auto" does not look. */
export function directionOf(tokens: string[]): "rtl" | "ltr" {
  const first = /\p{L}/u.exec(tokens.join(" "))?.[0] ?? "";
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(first) ? "rtl" : "ltr";
}

export function Tokens({ pieces }: { pieces: string[] }) {
  return <>{pieces.map((piece) => <span class="piece"><Token text={piece} /></span>)}</>;
}
