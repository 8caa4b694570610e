/** What Python hands over. Every number comes from dragoman.seeing; the page draws and computes none of its own. */

/** Numbers to the digits they are printed with: int16 little-endian in base64, row-major; each is its integer / 10^digits.
 *  -32768 stands for −∞. */
export interface Packed {
  shape: number[];
  digits: number;
  data: string;
}

export interface PageData {
  version: string; // of dragoman
  live: boolean; // served: text can be typed, tokens forced; else a saved file
  title: string;
  model: { name: string; family: string; task: string; parameters: number; shape: string; takes_text: boolean } | null; // takes_text: there is something to see of a text
  look: Look | null;
  arithmetic: Arithmetic[];
  positions: Positions | null;
  embeddings: Embeddings | null;
  training: Training | null;
  python: string; // the lines that give the same numbers; "" where no text was looked at
}

// ── one text ────────────────────────────────────────────────────────────────────────────

export interface Tokens {
  pieces: string[]; // as people read them
  words: number[]; // which word each piece belongs to; <start> and <end> are words of their own
  names: string[]; // of each word
}

export interface Look {
  kind: "translate" | "write" | "fill" | "read" | "see"; // read: a reader without masks in its text; see: an image
  text: string; // what was asked; for write, the beginning as it was read; for see, the name of the image
  source: Tokens | null; // what the encoder reads; null where there is none (write)
  given: Tokens | null; // what the decoder reads: <start> and what it wrote; null where there is none (fill)
  written: Tokens | null; // what it wrote at each step, <end> last; as long as `given`
  opening: number; // write: 1 where nothing stands before the text, so that its first token is never written; else 0
  prompt: number; // write: how many of `written` are the text that was given
  forced: number; // how many of `written` were forced by a person, after the prompt (0: none)
  translation: Written | null;
  reference: Reference | null;
  attention: AttentionLayer[];
  gold: Gold | null;
  steps: Step[]; // one for each of `written`
  beams: Beam[]; // that of the search first, then others to compare with; empty for write and fill
  masks: Mask[]; // fill: one for each [MASK]
  image: Picture | null; // see: its patches are the words of `source`, after the class token
}

export interface Written {
  text: string;
  score: number;
  log_prob: number;
  seconds: number;
  nbest: { text: string; score: number; log_prob: number }[]; // best first, the output itself included
  words: WordWeights | null;
  note: string; // why there are no `words`: no attention over the source, or nothing was written; else ""
}

/** How much each written word looked at each source word: the mean over all heads of all blocks. */
export interface WordWeights {
  source: string[];
  target: string[];
  weights: Packed; // target × source
  links: number[][]; // for each target word, the source words to light
  coverage: Packed; // for each source word, the sum over all target words
  least: number; // the source word with the least coverage
  dropped: boolean; // whether that is so little that the word may have been left out
}

export interface Reference {
  text: string;
  log_prob: number;
  score: number;
  verdict: "search error" | "model error" | "same" | "unwritable"; // unwritable: it holds what no output may
  sentence: string; // the verdict in words, with both numbers
  bleu: number;
  chrf: number;
}

export interface AttentionLayer {
  name: string; // of the module, "decoder.blocks.3.source_attention"
  kind: "encoder" | "decoder" | "cross";
  number: number; // which block, from 1
  queries: "source" | "given" | "written"; // whose pieces its rows are
  keys: "source" | "given";
  weights: Packed; // heads × queries × keys; a row sums to 1
  scores: Packed | null; // before mask and softmax; null where an image has too many
  visible: number[] | null; // for each query how many keys it may see, the first ones; null: all
  unmasked: Packed | null; // the weights as they would be without the mask; null where it hides nothing
  by_word: Packed | null; // null where every piece is a word; heads × words × words: keys of a word summed, queries of a word averaged
  entropy: number[]; // bits, for each head, the mean over its rows
  most_entropy: number; // bits, if every row looked everywhere alike
  aer: number[] | null; // alignment error rate of each head, where gold alignments are given
  mean: Packed | null; // see: the mean over the heads, all pieces × all pieces
}

/** The image as the model read it. */
export interface Picture {
  name: string;
  data: string; // a PNG as data URL
  size: [number, number]; // height and width, in pixels
  grid: [number, number]; // patches down and across
  told: { name: string; value: string; share: number | null }[]; // share: a probability, or a part of the image; null for a number
  asks: "class" | "patches"; // whose states the answer is read from
  rollout: Packed | null; // rows × columns
  area: Area | null; // of a segmenter
  left_out: string; // which weights are not here: each head has one row then, and `given` names it; "" where all are
}

/** A label for each pixel, and the commonest of each patch. */
export interface Area {
  data: string; // a PNG as data URL, a colour for each label
  labels: { name: string; colour: string }[];
  patches: string[]; // row by row
  shares: Packed; // rows × columns: how much of the patch has it
}

export interface Gold {
  text: string; // Pharaoh: "0-0 1-2"; "1p2" is possible
  sure: [number, number][]; // (source word, target word)
  possible: [number, number][];
  best: { layer: number; head: number; aer: number }; // layer is an index into `attention`, head counts from 0
  of: "output" | "reference"; // whose words the links lead to; the grid marks them only for the output
}

export interface Step {
  id: number; // of the token that was written
  token: string;
  log_prob: number;
  top: { id: number; token: string; probability: number }[]; // likeliest first
  looked: number[] | null; // over source pieces (or given ones, for write); sums to 1
  gates: Gate[]; // of the decoder's recurrent layers; else empty
  norm: number | null; // length of the last hidden state, of a recurrent decoder
}

export interface Gate {
  layer: number; // from 1
  name: string; // forget, input, output; reset, update
  mean: number;
  closed: number; // share of units below 0.1
  open: number; // share of units above 0.9
}

export interface Beam {
  width: number;
  nodes: BeamNode[]; // parents before children; the first is <start>
}

export interface BeamNode {
  id: number;
  parent: number | null;
  step: number; // 0 is <start>
  token: string;
  log_prob: number; // of the whole beginning
  score: number; // after the length penalty
  state: "kept" | "finished" | "pruned"; // kept ones that have no children say why in `reason`
  reason: string; // why it was pruned, or did not go on; "" where it went on
  rank: number | null; // of a finished one that is among the n-best, from 1
  best: boolean; // lies on the way to the output
}

export interface Mask {
  place: number; // index into source.pieces
  candidates: { token: string; probability: number; text: string }[];
}

// ── the arithmetic ──────────────────────────────────────────────────────────────────────

export interface Arithmetic {
  source: "slides" | "toy" | "model";
  title: string;
  note: string; // what these numbers are
  words: string[]; // those shown
  counted: string; // what they are, after their number: "words", "tokens", "of 10 tokens"
  heads: number;
  width: number; // of a token's vector
  head_width: number;
  stages: Stage[];
  shuffle: Shuffle | null;
}

export type StageName =
  | "patches" | "input" | "queries" | "keys" | "values" | "scores" | "scaled" | "masked" | "weights"
  | "context" | "concat" | "output" | "residual" | "norm" | "cell";

export interface Stage {
  name: StageName;
  title: string; // its heading
  sentence: string; // what happens here, in words
  matrices: Matrix[]; // left to right as in the formula: signs and names together are the formula
  terms: Terms | null; // scores: every q·k, or v·tanh(q + k), term by term
}

export interface Matrix {
  name: string; // "X", "W_Q", "Q" …
  sign: string; // what stands before it in the formula: "×", "=", ") ÷"; "" where nothing does
  shape: number[]; // its true shape
  rows: string[]; // labels of the rows shown
  columns: string[]; // labels of the columns shown
  values: Packed; // rows × columns shown
}

export interface Terms {
  rows: string[]; // who looks
  columns: string[]; // at whom
  products: Packed; // rows × columns × numbers: q_i · k_j number by number (the first ones, where there are many)
  queries: Packed; // rows × numbers, as many as in `products`
  keys: Packed; // columns × numbers
  sums: Packed; // rows × columns: of all terms
  left_out: number; // terms that are not shown
  hidden: Packed | null; // tanh(q + k), rows × columns × numbers, where a score is v · tanh(q + k)
  v: Packed | null; // what these are multiplied by
}

export interface Shuffle {
  order: number[]; // the shuffled sentence: word i is words[order[i]]
  words: string[]; // shuffled
  without: { before: Packed; after: Packed; difference: number }; // attention weights without positions
  with: { before: Packed; after: Packed; difference: number }; // … and with them; difference after undoing the shuffle
  sentence: string;
}

// ── positions and embeddings ────────────────────────────────────────────────────────────

export interface Positions {
  kind: string; // of the model: sinusoidal, learned, relative, none
  sentence: string;
  width: number;
  table: Packed; // positions × numbers: sinusoidal, the first of both
  learned: Packed | null; // what the model learned instead, as many
  longest: number | null; // positions there are, where they are learned
  waves: { dimension: number; wavelength: number; values: Packed }[];
  closeness: { distances: number[]; sinusoidal: Packed; learned: Packed | null }; // PE(p)·PE(p+k) over |PE|², mean over p
  bias: { distances: number[]; heads: Packed } | null; // T5's relative bias: heads × distances
  places: Places | null; // of a model that reads images
}

export interface Places {
  grid: [number, number]; // patches down and across
  cosines: Packed | null; // patches × patches; null where there are too many
  sentence: string;
}

export interface Embeddings {
  sentence: string;
  tokens: string[];
  points: Packed; // tokens × 2, the first principal components
  shares: number[]; // of the variance, for both
  in_text: boolean[]; // whether the token stands in the text looked at
  neighbours: { token: string; cosine: Neighbour[]; dot: Neighbour[] }[]; // of the text's tokens
}

export interface Neighbour {
  token: string;
  value: number;
}

// ── the training ────────────────────────────────────────────────────────────────────────

export interface Training {
  counted: string; // "tokens", "texts" or "images": what the loss is a mean over
  finished: boolean; // nothing follows: the best model is saved
  steps: number; // planned
  reports: { step: number[]; minutes: number[]; loss: number[]; rate: number[]; speed: number[]; gradient: number[] };
  validations: { step: number[]; loss: number[]; scores: Record<string, (number | null)[]> }; // null where a validation lacks it
  flips: Flip[]; // the dev sentences at each validation, oldest first
}

export interface Flip {
  step: number;
  sentences: { source: string; reference: string; output: string; attention: FlipAttention | null }[];
}

export interface FlipAttention {
  queries: string[];
  keys: string[];
  weights: Packed; // mean over all heads of all blocks; only where the checkpoint is still there
}

// ── the live page ───────────────────────────────────────────────────────────────────────
//  GET  /api/page                                          -> PageData, of the text looked at last
//  POST /api/look        LookRequest                       -> Answer
//  POST /api/arithmetic  { text: string }                  -> Arithmetic (of the model)
//  GET  /api/training                                      -> Training without attention in its flips; asked again
//                                                             while it is not finished
//  GET  /save                                              -> the page as one file, of the text looked at last
//  A mistake is { error: string } with a status of 400 and more.

/** All of PageData that hangs on the text. */
export type Answer = Pick<PageData, "title" | "look" | "arithmetic" | "embeddings" | "python">;

export interface LookRequest {
  text: string; // of an image, the file's name
  image?: string; // what the file holds, in base64
  target?: string; // a reference
  force?: number[]; // ids that the output must begin with
  gold?: string;
  beam?: number;
}
