// Builds the page into the Python package: `npm ci && npm run build` gives the committed files bit for bit.
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = fileURLToPath(new URL("../src/dragoman/seeing/web/", import.meta.url));

const bundled = ["preact", "@preact/signals", "@preact/signals-core", "d3-hierarchy", "uplot"];

async function licences() {
  const parts = bundled.map(async (name) => {
    const folder = `${here}node_modules/${name}/`;
    const { version } = JSON.parse(await readFile(`${folder}package.json`, "utf8"));
    const text = (await readFile(`${folder}LICENSE`, "utf8")).replaceAll("\r\n", "\n").trim();
    return `${name} ${version}\n\n${text}\n`;
  });
  const rule = `\n${"-".repeat(72)}\n\n`;
  return `app.js and app.css contain these packages.\n${rule}${(await Promise.all(parts)).join(rule)}`;
}

await mkdir(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  target: "es2022",
  format: "iife",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "external",
});
// The licence texts go into a file of their own, so that the saved page stays small.
await Promise.all(["app.js.LEGAL.txt", "app.css.LEGAL.txt"].map((name) => rm(out + name, { force: true })));
await writeFile(`${out}THIRD-PARTY.txt`, await licences());
await copyFile(`${here}index.html`, `${out}index.html`);
