/** A token as text, never as markup. White space shows as a sign drawn by CSS, so that copying gives the token itself. */

const SIGNS: Record<string, string> = { " ": "space", "\u00a0": "space", "\n": "newline", "\r": "newline", "\t": "tab" };

export function Token({ text }: { text: string }) {
  if (text === "") return <span class="token nothing" />;
  if (!/\s/.test(text)) return <bdi class="token">{text}</bdi>;
  return <bdi class="token">{text.split(/(\s)/).map((part) => visible(part))}</bdi>;
}

function visible(part: string) {
  return /^\s$/.test(part) ? <span class={SIGNS[part] ?? "space"}>{part}</span> : part;
}

export function Tokens({ pieces }: { pieces: string[] }) {
  return <>{pieces.map((piece) => <span class="piece"><Token text={piece} /></span>)}</>;
}
