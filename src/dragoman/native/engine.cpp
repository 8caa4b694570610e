// The Transformer's forward pass for writing text: `encode` a source once, then one call of `step` for each token.
//
// Stateless: every tensor belongs to Python (engine.py); here are only products and sums. Rows are the tokens of all
// sentences one after another, without padding. The equations are those of modules/block.py, part by part.

#include "threads.hpp"

using namespace dragoman;

extern "C" {

struct Linear {             // y = W x + b; scales, sums and bias go on to the end of the last panel
    int32_t in, out;
    const void *weights;    // packed, see kernels.hpp
    const float *scales;    // int8: one for each output; null where the weights are float32
    const int32_t *sums;    // int8: 128 Σₖ W[n, k], which is what ZERO adds to every sum
    const float *bias;      // or null
};

struct Norm {
    const float *gain, *shift;  // shift may be null
    float epsilon;
    int32_t kind;           // 0: none, 1: LayerNorm, 2: RMSNorm
};

struct Attention {
    Linear inward;          // self-attention: queries, keys and values in one; else queries alone
    Linear memory;          // attention over a source: its keys and values; unused in self-attention
    Linear outward;
    int32_t heads, head_width;
    float scale;
};

struct Block {
    Attention self, source; // source.heads is 0 where nothing else is read
    Linear inward, gate, outward;  // feed-forward; gate.out is 0 where there is no gate
    Norm around_self, around_source, around_feedforward;
    int32_t activation, norm_first;
};

struct Stack {
    int32_t width, blocks;
    const Block *block;
    Norm final_norm;
    const float *distances; // T5: (2 reach + 1, heads), added to the scores by distance key − query; or null
    int32_t reach;
};

struct Embedding {
    const float *table;
    float scale;
    const float *positions; // (longest, width) or null
};

struct Listed {             // those tokens alone that may come up in one sentence
    Linear scores;
    const int64_t *ids;     // (scores.out), rising
};

struct Source {             // what the decoder remembers of one sentence
    const float *memory;    // [block][its tokens][keys, values]
    int64_t block_stride;
    const Listed *listed;   // or null: any token
    int32_t length;
};

struct Step {
    int32_t threads;        // that compute it together
    int32_t rows, tokens;   // each row goes on by so many tokens
    const int64_t *ids;     // (rows, tokens)
    const int32_t *lengths; // (rows): tokens before these
    const int32_t *slots;   // (rows): where in the cache this row writes
    int32_t *where;         // (rows, places): in which slot each of its places was written
    int32_t places;
    float *cache;           // [slot][block][place][keys, values]
    const Source *sources;
    const int32_t *source_of;  // (rows)
    float *logits;          // (rows, tokens, V), or null: then the best of the last place
    int32_t count;          // so many of them
    int32_t ahead;          // 1, or with a count of 1: steps that may be done, each row going on with its own best token
    const uint8_t *never;   // (V): true for tokens that may not be chosen; or null
    int32_t renormalise;    // whether those have no share of the probability either
    int32_t end;            // this one is told apart from the others
    float *best;            // (ahead, rows, count): log-probabilities, best first
    int64_t *best_ids;      // (ahead, rows, count)
    float *ended;           // (ahead, rows): log-probability of `end`
};

}  // extern "C"

namespace {

struct Scratch {  // grows to the largest need and is kept, one for each thread
    std::vector<float> x, h, projected, context, hidden, gates, scores, tile, scales, keys, values;
    std::vector<Small> bytes;
    static float *of(std::vector<float> &part, int64_t n) {
        if (static_cast<int64_t>(part.size()) < n) part.resize(n);
        return part.data();
    }
};
thread_local Scratch scratch;

// ── linear layers ───────────────────────────────────────────────────────────────────────────

struct Rows {  // the left side of a product, made ready once for all panels
    int count, in;
    const float *floats;
    const Small *bytes;
    const float *scales;
};

constexpr int64_t FEW = 1 << 14;  // numbers that one thread has quantized before others have heard of it

Rows make_ready(const Linear &w, const float *x, int rows) {
    if (!w.scales) return {rows, w.in, x, nullptr, nullptr};
    int in = round_up(w.in, 4);
    auto &bytes = scratch.bytes;
    if (bytes.size() < static_cast<size_t>(rows) * in) bytes.resize(static_cast<size_t>(rows) * in);
    float *scales = Scratch::of(scratch.scales, rows);
    Small *to = bytes.data();
    auto quantize = [&](int r) {
        scales[r] = quantize_row(x + static_cast<int64_t>(r) * w.in, w.in, to + static_cast<int64_t>(r) * in);
    };
    if (static_cast<int64_t>(rows) * in > FEW) share_out(rows, quantize);
    else
        for (int r = 0; r < rows; r++) quantize(r);
    return {rows, in, nullptr, bytes.data(), scales};
}

// y = f(W x + b) for R rows and one panel; for `part` see panel_floats
template <int R>
void some_rows(const Linear &w, const Rows &x, int first, int part, int panel, int activation, float *y, int64_t stride) {
    int begin = panel * PANEL, width = std::min(PANEL, w.out - begin);
    alignas(64) float sums[R * PANEL];
    if (x.floats) {
        const float *weights = static_cast<const float *>(w.weights) + static_cast<int64_t>(panel) * PANEL * w.in;
        panel_floats<R>(x.floats + static_cast<int64_t>(first) * x.in, x.in, weights, sums, PANEL, part);
    } else {
        alignas(64) int32_t whole[R * PANEL];
        const int8_t *weights = static_cast<const int8_t *>(w.weights) + static_cast<int64_t>(panel) * PANEL * x.in;
        panel_bytes<R>(x.bytes + static_cast<int64_t>(first) * x.in, x.in, weights, whole);
        const int32_t *zero = w.sums + begin;  // padded, as scales and biases are
        const float *scales = w.scales + begin;
        for (int r = 0; r < R; r++)
            for (int n = 0; n < PANEL; n++)
                sums[r * PANEL + n] = (whole[r * PANEL + n] - zero[n]) * (x.scales[first + r] * scales[n]);
    }
    if (w.bias)
        for (int r = 0; r < R; r++)
            for (int n = 0; n < PANEL; n++) sums[r * PANEL + n] += w.bias[begin + n];
    if (activation != NONE) activate(activation, sums, R * PANEL);
    for (int r = 0; r < R; r++) std::memcpy(y + r * stride, sums + r * PANEL, width * sizeof(float));
}

// one panel for all rows: its weights stay in the cache while the rows go by
void one_panel(const Linear &w, const Rows &x, int panel, int activation, float *y, int64_t stride) {
    bool many = PARTS && x.count >= PARTS * ROWS;
    int r = 0;
    for (; r + ROWS <= x.count; r += ROWS)
        some_rows<ROWS>(w, x, r, many ? r / ROWS : -1, panel, activation, y + r * stride, stride);
    int part = many ? PARTS : -1;
    float *to = y + r * stride;
    switch (x.count - r) {
        case 1: return some_rows<1>(w, x, r, part, panel, activation, to, stride);
        case 2: return some_rows<2>(w, x, r, part, panel, activation, to, stride);
        case 3: return some_rows<3>(w, x, r, part, panel, activation, to, stride);
        case 4: return some_rows<4>(w, x, r, part, panel, activation, to, stride);
        case 5: return some_rows<5>(w, x, r, part, panel, activation, to, stride);
    }
}

void apply(const Linear &w, const float *x, int rows, float *y, int activation = NONE) {
    Rows ready = make_ready(w, x, rows);
    share_out((w.out + PANEL - 1) / PANEL,
              [&](int panel) { one_panel(w, ready, panel, activation, y + panel * PANEL, w.out); });
}

// ── norms, residuals ────────────────────────────────────────────────────────────────────────

void normalise(const Norm &norm, const float *x, int rows, int width, float *y) {
    for (int r = 0; r < rows; r++, x += width, y += width) {
        float mean = 0.0f;
        if (norm.kind == 1) {
            Lanes sum = {};
            int i = 0;
            for (; i + LANES <= width; i += LANES) sum += load(x + i);
            float rest = 0.0f;
            for (; i < width; i++) rest += x[i];
            mean = (sum_of(sum) + rest) / width;
        }
        for (int i = 0; i < width; i++) y[i] = x[i] - mean;
        float scale = 1.0f / std::sqrt(dot(y, y, width) / width + norm.epsilon);
        if (norm.shift)
            for (int i = 0; i < width; i++) y[i] = y[i] * scale * norm.gain[i] + norm.shift[i];
        else
            for (int i = 0; i < width; i++) y[i] = y[i] * scale * norm.gain[i];
    }
}

// what a sublayer reads: x itself, or x normalised
const float *enter(const Block &block, const Norm &norm, const float *x, int rows, int width) {
    if (!block.norm_first) return x;
    float *h = Scratch::of(scratch.h, static_cast<int64_t>(rows) * width);
    normalise(norm, x, rows, width, h);
    return h;
}

// x ← x + y, normalised after the sum where it was not before the sublayer
void leave(const Block &block, const Norm &norm, float *x, const float *y, int rows, int width) {
    for (int64_t i = 0; i < static_cast<int64_t>(rows) * width; i++) x[i] += y[i];
    if (!block.norm_first) normalise(norm, x, rows, width, x);
}

void feed_forward(const Block &block, float *x, int rows, int width) {
    const float *h = enter(block, block.around_feedforward, x, rows, width);
    int64_t inner = static_cast<int64_t>(rows) * block.inward.out;
    float *hidden = Scratch::of(scratch.hidden, inner);
    if (block.gate.out) {
        float *gates = Scratch::of(scratch.gates, inner);
        apply(block.gate, h, rows, gates, block.activation);
        apply(block.inward, h, rows, hidden);
        for (int64_t i = 0; i < inner; i++) hidden[i] *= gates[i];
    } else {
        apply(block.inward, h, rows, hidden, block.activation);
    }
    float *y = Scratch::of(scratch.context, static_cast<int64_t>(rows) * width);
    apply(block.outward, hidden, rows, y);
    leave(block, block.around_feedforward, x, y, rows, width);
}

// ── attention ───────────────────────────────────────────────────────────────────────────────

inline float distance_bias(const Stack &stack, int heads, int head, int key, int query) {
    if (!stack.distances) return 0.0f;
    int distance = std::max(-stack.reach, std::min(stack.reach, key - query));
    return stack.distances[static_cast<int64_t>(distance + stack.reach) * heads + head];
}

// one query of all heads reads `places` places, each a row of keys and a row of values: softmax(q·k scale + bias) v.
// Place by place and not head by head, so that memory is read from front to back.
template <class Key, class Value, class Bias>
inline void attend(const Attention &a, const float *query, int places, Key key, Value value, Bias bias, float *context) {
    int width = a.head_width;
    float *scores = Scratch::of(scratch.scores, static_cast<int64_t>(a.heads) * places);
    for (int j = 0; j < places; j++) {
        const float *k = key(j);
        for (int h = 0; h < a.heads; h++)
            scores[h * places + j] = a.scale * dot(query + h * width, k + h * width, width) + bias(h, j);
    }
    for (int h = 0; h < a.heads; h++) {
        float *weights = scores + h * places;
        float share = 1.0f / exponentials(weights, places, largest(weights, places));
        for (int j = 0; j < places; j++) weights[j] *= share;
    }
    for (int i = 0; i < a.heads * width; i++) context[i] = 0.0f;
    for (int j = 0; j < places; j++) {
        const float *v = value(j);
        for (int h = 0; h < a.heads; h++) add_scaled(context + h * width, v + h * width, scores[h * places + j], width);
    }
}

// each token of a sentence reads all of it, head by head: a head's keys are laid side by side first, [number][place],
// so that the scores of many places are summed at once
void read_oneself(const Stack &stack, const Attention &a, const float *projected, int length, float *context) {
    int width = a.head_width, padded = round_up(length, LANES);
    int64_t inner = a.heads * width, stride = 3 * inner;
    float *keys = Scratch::of(scratch.keys, static_cast<int64_t>(padded) * width);
    float *values = Scratch::of(scratch.values, static_cast<int64_t>(length) * width);
    float *scores = Scratch::of(scratch.scores, padded);
    for (int h = 0; h < a.heads; h++) {
        const float *first = projected + inner + h * width;
        for (int j = 0; j < padded; j++)
            for (int i = 0; i < width; i++) keys[i * padded + j] = j < length ? first[j * stride + i] : 0.0f;
        for (int j = 0; j < length; j++) std::memcpy(values + j * width, first + j * stride + inner, width * sizeof(float));
        for (int q = 0; q < length; q++) {
            const float *query = projected + q * stride + h * width;
            sums_of_rows(keys, padded, query, width, scores);
            for (int j = 0; j < length; j++) scores[j] = a.scale * scores[j] + distance_bias(stack, a.heads, h, j, q);
            float share = 1.0f / exponentials(scores, length, largest(scores, length));
            for (int j = 0; j < length; j++) scores[j] *= share;
            sums_of_rows(values, width, scores, length, context + q * inner + h * width);
        }
    }
}

// one token reads what its row has written so far, itself included
void read_past(const Stack &stack, const Attention &a, const Step &step, int row, int block, int place,
               const float *query, float *context) {
    int64_t inner = a.heads * a.head_width, per_block = step.places * 2 * inner, per_slot = per_block * stack.blocks;
    const int32_t *where = step.where + static_cast<int64_t>(row) * step.places;
    const float *cache = step.cache + block * per_block;
    auto key = [&](int j) { return cache + where[j] * per_slot + j * 2 * inner; };
    attend(a, query, place + 1, key, [&](int j) { return key(j) + inner; },
           [&](int h, int j) { return distance_bias(stack, a.heads, h, j, place); }, context);
}

void read_source(const Attention &a, const Source &source, int block, const float *query, float *context) {
    int64_t inner = a.heads * a.head_width;
    const float *memory = source.memory + block * source.block_stride;
    attend(a, query, source.length, [&](int j) { return memory + j * 2 * inner; },
           [&](int j) { return memory + j * 2 * inner + inner; }, [](int, int) { return 0.0f; }, context);
}

void embed(const Embedding &embedding, int64_t id, int place, int width, float *x) {
    const float *row = embedding.table + id * width;
    for (int i = 0; i < width; i++) x[i] = row[i] * embedding.scale;
    if (!embedding.positions) return;
    const float *position = embedding.positions + static_cast<int64_t>(place) * width;
    for (int i = 0; i < width; i++) x[i] += position[i];
}

// ── the best tokens ─────────────────────────────────────────────────────────────────────────

constexpr int TILE = 8;  // panels scored at a time

struct Best {  // of one row, as far as one thread has looked through the vocabulary: the best tokens, best first
    explicit Best(int count) : count(count) { tokens.reserve(count + 1); }

    using Scored = std::pair<float, int64_t>;
    static bool before(const Scored &a, const Scored &b) {  // of equal ones the first in the vocabulary
        return a.first > b.first || (a.first == b.first && a.second < b.second);
    }

    bool is_full() const { return static_cast<int>(tokens.size()) == count; }

    void insert(const Scored &one) {
        if (is_full() && !before(one, tokens.back())) return;
        auto place = tokens.end();
        while (place != tokens.begin() && before(one, *(place - 1))) place--;
        tokens.insert(place, one);
        if (static_cast<int>(tokens.size()) > count) tokens.pop_back();
    }

    int count;
    std::vector<Scored> tokens;
};

struct Sum {  // Σ eˣ of one row over a part of the vocabulary, as total · e^most
    float most, total;
};

// scores of the tokens from `first` on; or of those in `ids`, if it is given
Sum look_through(const Step &step, float *scores, int first, int width, const int64_t *ids, Best &best) {
    if (step.never && step.renormalise)
        for (int n = 0; n < width; n++) scores[n] = step.never[ids ? ids[first + n] : first + n] ? -INFINITY : scores[n];
    float most = largest(scores, width);
    if (most == -INFINITY) return {most, 0.0f};
    bool may_have = !best.is_full() || most >= best.tokens.back().first;
    for (int n = 0; may_have && n < width; n++) {
        int64_t id = ids ? ids[first + n] : first + n;
        if ((!best.is_full() || scores[n] >= best.tokens.back().first) && id != step.end && !(step.never && step.never[id]))
            best.insert({scores[n], id});
    }
    return {most, sum_of_exponentials(scores, width, most)};
}

// log Σ eˣ, the parts added in their order: the same bits whoever has looked through which
float log_of_sums(const Sum *sums, int parts, int step) {
    float most = sums[0].most, total = 0.0f;
    for (int i = 1; i < parts; i++) most = std::max(most, sums[i * step].most);
    for (int i = 0; i < parts; i++) total += sums[i * step].total * exponential(sums[i * step].most - most);
    return most + std::log(total);
}

// what is answered for row r, whose `sums` are `apart` from one part to the next
void answer(const Step &step, int r, const Best &found, const Sum *sums, int parts, int apart) {
    float log_sum = log_of_sums(sums, parts, apart);
    step.ended[r] -= log_sum;
    for (int i = 0; i < step.count; i++) {
        bool there = i < static_cast<int>(found.tokens.size());
        step.best[static_cast<int64_t>(r) * step.count + i] = there ? found.tokens[i].first - log_sum : -INFINITY;
        step.best_ids[static_cast<int64_t>(r) * step.count + i] = there ? found.tokens[i].second : 0;
    }
}

// log-probabilities of the best tokens; each thread looks through parts of the vocabulary
void choose(const Linear &scores, const float *states, const Step &step) {
    Rows ready = make_ready(scores, states, step.rows);
    Team &all = team();
    int rows = step.rows, tiles = (scores.out + TILE * PANEL - 1) / (TILE * PANEL);
    std::vector<Best> best(all.size * rows, Best(step.count));
    std::vector<Sum> sums(static_cast<size_t>(tiles) * rows);
    std::fill(step.ended, step.ended + rows, -INFINITY);
    all.run(tiles, [&](int i, int t) {
        float *tile = Scratch::of(scratch.tile, static_cast<int64_t>(rows) * TILE * PANEL);
        int first = i * TILE * PANEL, width = std::min(TILE * PANEL, scores.out - first);
        for (int n = 0; n < width; n += PANEL)
            one_panel(scores, ready, (first + n) / PANEL, NONE, tile + n, TILE * PANEL);
        for (int r = 0; r < rows; r++) {
            float *row = tile + static_cast<int64_t>(r) * TILE * PANEL;
            sums[i * rows + r] = look_through(step, row, first, width, nullptr, best[t * rows + r]);
            if (step.end >= first && step.end < first + width) step.ended[r] = row[step.end - first];
        }
    });
    for (int r = 0; r < rows; r++) {
        Best &found = best[r];
        for (int t = 1; t < all.size; t++)
            for (auto &one : best[t * rows + r].tokens) found.insert(one);
        answer(step, r, found, sums.data() + r, tiles, rows);
    }
}

// the same among the tokens of a list, for `rows` rows from `first` on, which are of one sentence
void choose_listed(const Listed &listed, const Rows &all, int first, int rows, const Step &step) {
    const Linear &scores = listed.scores;
    int64_t before = static_cast<int64_t>(first) * all.in;
    Rows own = {rows, all.in, all.floats ? all.floats + before : nullptr, all.bytes ? all.bytes + before : nullptr,
                all.scales ? all.scales + first : nullptr};
    int padded = round_up(scores.out, PANEL);
    float *tile = Scratch::of(scratch.tile, static_cast<int64_t>(rows) * padded);
    for (int n = 0; n < scores.out; n += PANEL) one_panel(scores, own, n / PANEL, NONE, tile + n, padded);
    const int64_t *end = std::lower_bound(listed.ids, listed.ids + scores.out, step.end);
    bool may_end = end < listed.ids + scores.out && *end == step.end;
    for (int r = 0; r < rows; r++) {
        float *row = tile + static_cast<int64_t>(r) * padded;
        Best best(step.count);
        Sum sum = look_through(step, row, 0, scores.out, listed.ids, best);
        step.ended[first + r] = may_end ? row[end - listed.ids] : -INFINITY;
        answer(step, first + r, best, &sum, 1, 1);
    }
}

// each sentence chooses from a list of its own
void choose_from_lists(const Linear &scores, const float *states, const Step &step) {
    Rows ready = make_ready(scores, states, step.rows);
    std::vector<int> begins;
    for (int r = 0; r < step.rows; r++)
        if (!r || step.source_of[r] != step.source_of[r - 1]) begins.push_back(r);
    begins.push_back(step.rows);
    share_out(static_cast<int>(begins.size()) - 1, [&](int i) {
        const Source &source = step.sources[step.source_of[begins[i]]];
        choose_listed(*source.listed, ready, begins[i], begins[i + 1] - begins[i], step);
    });
}

// ── the encoder ─────────────────────────────────────────────────────────────────────────────

constexpr int TOGETHER = 128;  // tokens that go through the encoder together: what lies between its layers stays in the cache

void encode_some(const Stack &stack, const Embedding &embedding, const int64_t *ids, const int32_t *lengths,
                 int sentences, float *x) {
    int rows = 0, width = stack.width;
    std::vector<int64_t> first(sentences);
    for (int s = 0; s < sentences; s++)
        for (int place = (first[s] = rows, 0); place < lengths[s]; place++, rows++)
            embed(embedding, ids[rows], place, width, x + static_cast<int64_t>(rows) * width);
    for (int b = 0; b < stack.blocks; b++) {
        const Block &block = stack.block[b];
        int inner = block.self.heads * block.self.head_width;
        const float *h = enter(block, block.around_self, x, rows, width);
        float *projected = Scratch::of(scratch.projected, static_cast<int64_t>(rows) * 3 * inner);
        apply(block.self.inward, h, rows, projected);
        float *context = Scratch::of(scratch.context, static_cast<int64_t>(rows) * std::max(inner, width));
        share_out(sentences, [&](int s) {
            read_oneself(stack, block.self, projected + first[s] * 3 * inner, lengths[s], context + first[s] * inner);
        });
        float *y = Scratch::of(scratch.hidden, static_cast<int64_t>(rows) * width);
        apply(block.self.outward, context, rows, y);
        leave(block, block.around_self, x, y, rows, width);
        feed_forward(block, x, rows, width);
    }
    if (stack.final_norm.kind) normalise(stack.final_norm, x, rows, width, x);
}

// ── the decoder ─────────────────────────────────────────────────────────────────────────────

// each row goes on by its tokens
void one_step(const Stack *stack, const Embedding *embedding, const Linear *scores, float output_scale, const Step &step) {
    int width = stack->width, rows = step.rows * step.tokens;
    float *x = Scratch::of(scratch.x, static_cast<int64_t>(rows) * width);
    for (int r = 0, n = 0; r < step.rows; r++)
        for (int t = 0; t < step.tokens; t++, n++) {
            int place = step.lengths[r] + t;
            step.where[static_cast<int64_t>(r) * step.places + place] = step.slots[r];
            embed(*embedding, step.ids[n], place, width, x + static_cast<int64_t>(n) * width);
        }
    for (int b = 0; b < stack->blocks; b++) {
        const Block &block = stack->block[b];
        int inner = block.self.heads * block.self.head_width;
        int64_t per_block = static_cast<int64_t>(step.places) * 2 * inner, per_slot = per_block * stack->blocks;
        const float *h = enter(block, block.around_self, x, rows, width);
        float *projected = Scratch::of(scratch.projected, static_cast<int64_t>(rows) * 3 * inner);
        apply(block.self.inward, h, rows, projected);
        for (int r = 0, n = 0; r < step.rows; r++)
            for (int t = 0; t < step.tokens; t++, n++) {
                int64_t place = step.lengths[r] + t;
                float *to = step.cache + step.slots[r] * per_slot + b * per_block + place * 2 * inner;
                std::memcpy(to, projected + static_cast<int64_t>(n) * 3 * inner + inner, 2 * inner * sizeof(float));
            }
        float *context = Scratch::of(scratch.context, static_cast<int64_t>(rows) * std::max(inner, width));
        share_out(rows, [&](int n) {
            read_past(*stack, block.self, step, n / step.tokens, b, step.lengths[n / step.tokens] + n % step.tokens,
                      projected + static_cast<int64_t>(n) * 3 * inner, context + static_cast<int64_t>(n) * inner);
        });
        float *y = Scratch::of(scratch.hidden, static_cast<int64_t>(rows) * width);
        apply(block.self.outward, context, rows, y);
        leave(block, block.around_self, x, y, rows, width);

        if (block.source.heads) {
            inner = block.source.heads * block.source.head_width;
            h = enter(block, block.around_source, x, rows, width);
            projected = Scratch::of(scratch.projected, static_cast<int64_t>(rows) * inner);
            context = Scratch::of(scratch.context, static_cast<int64_t>(rows) * std::max(inner, width));
            apply(block.source.inward, h, rows, projected);
            share_out(rows, [&](int n) {
                read_source(block.source, step.sources[step.source_of[n / step.tokens]], b,
                            projected + static_cast<int64_t>(n) * inner, context + static_cast<int64_t>(n) * inner);
            });
            y = Scratch::of(scratch.hidden, static_cast<int64_t>(rows) * width);
            apply(block.source.outward, context, rows, y);
            leave(block, block.around_source, x, y, rows, width);
        }
        feed_forward(block, x, rows, width);
    }
    if (stack->final_norm.kind) normalise(stack->final_norm, x, rows, width, x);
    if (output_scale != 1.0f)
        for (int64_t i = 0; i < static_cast<int64_t>(rows) * width; i++) x[i] *= output_scale;
    if (step.logits) return apply(*scores, x, rows, step.logits);
    if (step.tokens > 1)  // only the last place of each row is asked for
        for (int r = 0; r < step.rows; r++)
            std::memmove(x + static_cast<int64_t>(r) * width, x + (static_cast<int64_t>(r + 1) * step.tokens - 1) * width,
                         width * sizeof(float));
    bool listed = step.sources && step.rows && step.sources[step.source_of[0]].listed;  // all sentences, or none
    listed ? choose_from_lists(*scores, x, step) : choose(*scores, x, step);
}

}  // namespace

// ── what Python calls ───────────────────────────────────────────────────────────────────────

extern "C" {

// which build this processor can run: 0 plain, 1 AVX2, 2 AVX-512 with VNNI
int32_t processor_level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512vnni");
    return fused ? (wide ? 2 : 1) : 0;
#else
    return 0;
#endif
}

int64_t packed_size(int32_t out, int32_t in, int32_t bytes) {
    return static_cast<int64_t>(round_up(out, PANEL)) * (bytes ? round_up(in, 4) : 4 * in);
}

void pack_floats(const float *w, int32_t out, int32_t in, float *packed) {
    for (int n = 0; n < round_up(out, PANEL); n++)
        for (int k = 0; k < in; k++)
            packed[(static_cast<int64_t>(n / PANEL) * in + k) * PANEL + n % PANEL] =
                n < out ? w[static_cast<int64_t>(n) * in + k] : 0.0f;
}

// row n of a matrix of bytes, four after four in its panel, with a scale of its own; zeros where there is no row
void pack_row(const float *row, int32_t in, int n, int8_t *packed, float *scales, int32_t *sums) {
    int padded = round_up(in, 4);
    std::vector<Small> room(padded, static_cast<Small>(ZERO));
    const Small *raised = room.data();
    scales[n] = row ? quantize_row(row, in, room.data()) : 0.0f;
    int32_t sum = 0;
    int8_t *to = packed + (static_cast<int64_t>(n / PANEL) * padded / 4 * PANEL + n % PANEL) * 4;
    for (int k = 0; k < padded; k++) sum += raised[k] - ZERO;
    for (int k = 0; k < padded; k += 4, to += 4 * PANEL)
        for (int i = 0; i < 4; i++) to[i] = static_cast<int8_t>(raised[k + i] - ZERO);
    sums[n] = ZERO * sum;
}

void pack_bytes(const float *w, int32_t out, int32_t in, int8_t *packed, float *scales, int32_t *sums) {
    for (int n = 0; n < round_up(out, PANEL); n++)
        pack_row(n < out ? w + static_cast<int64_t>(n) * in : nullptr, in, n, packed, scales, sums);
}

// a list is one piece of memory: Listed, ids, weights, and scales, sums and biases as far as there are any
int64_t list_size(const Linear *scores, int32_t count) {
    int64_t padded = round_up(count, PANEL);
    return sizeof(Listed) + PANEL + count * sizeof(int64_t) + 3 * padded * sizeof(float) +
           packed_size(count, scores->in, scores->scales != nullptr);
}

// the rows of these tokens in `table`, packed as all of them are in `whole`
void make_list(const Linear *whole, const float *table, const int64_t *ids, int32_t count, char *memory) {
    int padded = round_up(count, PANEL), in = whole->in;
    Listed *made = reinterpret_cast<Listed *>(memory);
    int64_t *kept = reinterpret_cast<int64_t *>(made + 1);
    float *scales = reinterpret_cast<float *>(kept + count), *bias = scales + padded;
    int32_t *sums = reinterpret_cast<int32_t *>(bias + padded);
    uintptr_t after = reinterpret_cast<uintptr_t>(sums + padded);
    void *to = reinterpret_cast<void *>((after + PANEL - 1) / PANEL * PANEL);  // where a line of the cache begins
    bool bytes = whole->scales;
    *made = {{in, count, to, bytes ? scales : nullptr, bytes ? sums : nullptr, whole->bias ? bias : nullptr}, kept};
    std::copy(ids, ids + count, kept);
    for (int n = 0; n < padded; n++) {
        const float *row = n < count ? table + ids[n] * in : nullptr;
        if (bytes) pack_row(row, in, n, static_cast<int8_t *>(to), scales, sums);
        else {
            float *place = static_cast<float *>(to) + static_cast<int64_t>(n / PANEL) * PANEL * in + n % PANEL;
            for (int k = 0; k < in; k++) place[static_cast<int64_t>(k) * PANEL] = row ? row[k] : 0.0f;
        }
        bias[n] = whole->bias && row ? whole->bias[ids[n]] : 0.0f;
    }
}

// sentences of these lengths, one after another -> a state for each of their tokens
void encode(const Stack *stack, const Embedding *embedding, const int64_t *ids, const int32_t *lengths,
            int32_t sentences, int32_t threads, float *x) {
    FlushDenormals flush;
    team(threads);
    for (int s = 0; s < sentences;) {
        int some = 0, rows = 0;
        do rows += lengths[s + some++];
        while (s + some < sentences && rows + lengths[s + some] <= TOGETHER);
        encode_some(*stack, *embedding, ids, lengths + s, some, x);
        s += some, ids += rows, x += static_cast<int64_t>(rows) * stack->width;
    }
}

// what each block of the decoder will read of these states: [block][row][keys, values]
void remember(const Stack *decoder, const float *states, int32_t rows, int32_t threads, float *memory) {
    FlushDenormals flush;
    team(threads);
    for (int b = 0; b < decoder->blocks; b++) {
        const Linear &to = decoder->block[b].source.memory;
        apply(to, states, rows, memory);
        memory += static_cast<int64_t>(rows) * to.out;
    }
}

// How many steps were done: the first, and further ones as long as no row is likelier to end than to go on. Several in one
// call find their weights and their tables where the last one left them; Python's part would have come between.
int32_t step(const Stack *stack, const Embedding *embedding, const Linear *scores, float output_scale, const Step *given) {
    FlushDenormals flush;
    team(given->threads);
    Step now = *given;
    std::vector<int64_t> ids(now.rows);
    std::vector<int32_t> lengths(now.lengths, now.lengths + now.rows);
    for (int done = 1;; done++) {
        one_step(stack, embedding, scores, output_scale, now);
        if (done >= now.ahead) return done;
        for (int r = 0; r < now.rows; r++) {
            if (now.best[r] <= now.ended[r]) return done;
            ids[r] = now.best_ids[r], lengths[r] += now.tokens;
        }
        now.ids = ids.data(), now.lengths = lengths.data(), now.tokens = 1;
        now.best += now.rows, now.best_ids += now.rows, now.ended += now.rows;
    }
}

}  // extern "C"
