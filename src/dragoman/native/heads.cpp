// Attention of one head over one short text. It is small enough for the nearest cache; all of its products are computed
// there, in one go, and what is between them is never written to memory.

#include "heads.hpp"

using namespace dragoman;

namespace {

// ── products of matrices that lie in the cache ──────────────────────────────────────────────

constexpr int WIDE = LANES == 16 ? 4 : 2;  // vectors of a row that are summed together
constexpr int MANY = LANES == 16 ? 8 : 4;  // rows, where rows are narrow: enough sums must be under way at a time

struct View {  // a matrix whose rows are `step` numbers apart, and the numbers of a row `next`
    const float *data;
    int64_t step, next = 1;

    View turned() const { return {data, next, step}; }
};

template <int R> inline void row_products(View x, int in, View w, int n, float *y, int64_t y_step) {
    int i = 0;
    for (; R < 8 && i + WIDE * LANES <= n; i += WIDE * LANES)
        some_products<R, R < 8 ? WIDE : 1>(x.data, x.step, in, w.data + i, w.step, y + i, y_step, x.next);
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        some_products<R, 2>(x.data, x.step, in, w.data + i, w.step, y + i, y_step, x.next);
    for (; i < n; i += LANES) some_products<R, 1>(x.data, x.step, in, w.data + i, w.step, y + i, y_step, x.next);
}

struct Bounds {  // what is not zero, row by row; null where all of it is asked for
    const int *columns = nullptr;  // of the result: those before this one
    const int *after = nullptr, *before = nullptr;  // terms of a sum: from one to the other; `after` never falls
};

template <int R> void some_rows(View x, int in, View w, int n, float *y, int64_t y_step, const Bounds &b, int r) {
    auto most = [&](const int *bound, int all) { return bound ? *std::max_element(bound + r, bound + r + R) : all; };
    int first = b.after ? b.after[r] : 0, terms = std::max(0, most(b.before, in) - first);
    int columns = std::min(n, round_up(most(b.columns, n), LANES));
    row_products<R>({x.data + r * x.step + first * x.next, x.step, x.next}, terms, {w.data + first * w.step, w.step}, columns, y + r * y_step, y_step);
}

// y[rows][n] = x[rows][in] · w[in][n]; n is a multiple of LANES, and the numbers of a row of w are neighbours
void products(View x, int rows, int in, View w, int n, float *y, int64_t y_step, const Bounds &b = {}) {
    int r = 0;
    for (; n < WIDE * LANES && r + MANY <= rows; r += MANY) some_rows<MANY>(x, in, w, n, y, y_step, b, r);
    for (; r + 4 <= rows; r += 4) some_rows<4>(x, in, w, n, y, y_step, b, r);
    if (rows - r == 3) some_rows<3>(x, in, w, n, y, y_step, b, r);
    if (rows - r == 2) some_rows<2>(x, in, w, n, y, y_step, b, r);
    if (rows - r == 1) some_rows<1>(x, in, w, n, y, y_step, b, r);
}

// ── one head of one text ────────────────────────────────────────────────────────────────────

struct Matrix {  // room for rows of `width` numbers, which is a multiple of LANES
    std::vector<float> numbers;
    int width = 0;

    float *of(int rows, int columns) {
        width = round_up(columns, LANES);
        if (numbers.size() < static_cast<size_t>(rows) * width) numbers.resize(static_cast<size_t>(rows) * width);
        return numbers.data();
    }
    View take(View from, int rows, int columns) {
        float *to = of(rows, columns);
        for (int r = 0; r < rows; r++, to += width, from.data += from.step)
            for (int i = 0; i < width; i++) to[i] = i < columns ? from.data[i] : 0.0f;
        return {numbers.data(), width};
    }
    View take_turned(View from, int rows, int columns) {  // (rows columns) as (columns rows)
        float *to = of(columns, rows);
        turn(from.data, from.step, rows, columns, to, width);
        for (int c = 0; c < columns; c++) std::fill(to + c * width + rows, to + (c + 1) * width, 0.0f);
        return {numbers.data(), width};
    }
};

// the last place that is not zero, and one more
int end_of(const uint8_t *mask, int64_t step, int count) {
    for (uint64_t eight; step == 1 && count >= 8; count -= 8) {
        std::memcpy(&eight, mask + count - 8, 8);
        if (eight) break;
    }
    while (count && !mask[(count - 1) * step]) count--;
    return count;
}

// Which keys a query may see lie before one place; from which query on each key is seen. Half of a decoder's scores
// are in its future and padding is behind every text: neither is computed.
struct Sight {
    std::vector<int> until, from;
    bool whole;  // every key before that place is seen

    void look(const Attending &a, int text, int head) {
        const int64_t *step = a.mask_steps;
        until.assign(a.queries, a.keys);
        whole = true;
        for (int i = 0; a.mask && i < a.queries; i++) {
            const uint8_t *mask = a.mask + text * step[0] + head * step[1] + i * step[2];
            int &end = until[i];
            if (i && !step[2]) end = until[i - 1];
            else {
                end = end_of(mask, step[3], end);
                whole = whole && step[3] == 1 && !std::memchr(mask, 0, end);
            }
        }
        from.assign(a.keys, a.queries);
        for (int i = 0, seen = 0; i < a.queries; i++)
            while (seen < until[i]) from[seen++] = i;
    }
};

struct Desk {
    Matrix keys, queries, above, values, scores, slopes, turned, hidden, result;
    Sight sight;
};
thread_local Desk desk;

inline int64_t offset(const Heads &heads, int text, int head) { return text * heads.text + head * heads.head; }

// rows that may be read to a multiple of LANES: where they lie, if that is their width, else copied and padded
View read(const Heads &from, int text, int head, int rows, int width, Matrix &room) {
    View there = {from.data + offset(from, text, head), from.place};
    return width % LANES ? room.take(there, rows, width) : there;
}

// to[rows][width] = x[rows][in] · w[in][width]
void write(View x, int rows, int in, View w, int width, const Heads &to, int text, int head, const Bounds &b) {
    float *there = to.data + offset(to, text, head);
    if (width % LANES == 0) return products(x, rows, in, w, width, there, to.place, b);
    float *result = desk.result.of(rows, width);
    products(x, rows, in, w, desk.result.width, result, desk.result.width, b);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < width; i++) there[r * to.place + i] = result[static_cast<int64_t>(r) * desk.result.width + i];
}

// what is added to the scores of a query: the bias, and −∞ where it may not look
void hide(const Attending &a, int text, int head, int query, float *hidden, int width) {
    const int64_t *step = a.bias_steps;
    const float *bias = a.bias ? a.bias + text * step[0] + head * step[1] + query * step[2] : nullptr;
    int keys = std::min(a.keys, width);
    for (int j = 0; j < keys; j++) hidden[j] = bias ? bias[j * step[3]] : 0.0f;
    for (int j = keys; j < width; j++) hidden[j] = -INFINITY;
    if (!a.mask) return;
    step = a.mask_steps;
    const uint8_t *mask = a.mask + text * step[0] + head * step[1] + query * step[2];
    for (int j = 0; j < keys; j++) hidden[j] = mask[j * step[3]] ? hidden[j] : -INFINITY;
}

// softmax(scale · scores + hidden) of the first `seen`, of which there is room for a multiple of LANES; zeros where nothing
// may be seen. Without `hidden` all of them are seen.
void weigh(float *scores, const float *hidden, int seen, float scale) {
    int width = round_up(seen, LANES);
    if (!width) return;
    for (int j = 0; j < width; j++) scores[j] = hidden ? scores[j] * scale + hidden[j] : scores[j] * scale;
    if (!hidden) std::fill(scores + seen, scores + width, -INFINITY);
    float most = largest(scores, width);
    if (most == -INFINITY) return std::fill(scores, scores + width, 0.0f);
    for (int j = 0; j < width; j++) scores[j] = scores[j] == -INFINITY ? 0.0f : exponential(scores[j] - most);
    Lanes sums = {};
    for (int j = 0; j < width; j += LANES) sums += load(scores + j);
    float share = 1.0f / sum_of(sums);
    for (int j = 0; j < width; j++) scores[j] *= share;
}

inline float *kept_weights(const Attending &a, int text, int head) {
    return a.weights + (static_cast<int64_t>(text) * a.heads + head) * a.queries * a.keys;
}

}  // namespace

void dragoman::read_head(const Attending &a, int text, int head) {
    Desk &d = desk;
    View keys = d.turned.take_turned({a.key.data + offset(a.key, text, head), a.key.place}, a.keys, a.width);
    View values = read(a.value, text, head, a.keys, a.width, d.values);
    bool in_place = a.weights && a.keys % LANES == 0;  // else rows are padded, and copied in the end
    float *scores = in_place ? kept_weights(a, text, head) : d.scores.of(a.queries, a.keys);
    int width = in_place ? a.keys : d.scores.width;
    d.sight.look(a, text, head);
    const int *until = d.sight.until.data();
    View queries = {a.query.data + offset(a.query, text, head), a.query.place};
    products(queries, a.queries, a.width, keys, width, scores, width, {until});
    bool alike = (!a.mask || !a.mask_steps[2]) && (!a.bias || !a.bias_steps[2]);  // for all queries
    float *hidden = d.sight.whole && !a.bias ? nullptr : d.hidden.of(1, a.keys);
    for (int i = 0; i < a.queries; i++) {
        int seen = round_up(until[i], LANES);
        if (hidden && (i == 0 || !alike)) hide(a, text, head, i, hidden, seen);
        weigh(scores + i * width, hidden, until[i], a.scale);
        std::fill(scores + i * width + seen, scores + (i + 1) * width, 0.0f);
    }
    write({scores, width}, a.queries, a.keys, values, a.width, a.context, text, head, {nullptr, nullptr, until});
    if (!a.weights || in_place) return;
    float *kept = kept_weights(a, text, head);
    for (int i = 0; i < a.queries; i++) std::memcpy(kept + i * a.keys, scores + i * width, a.keys * sizeof(float));
}

// with W the weights and C = W V the context:   dV = Wᵀ dC;  dW = dC Vᵀ;  dS = W ∘ (dW − Σ W ∘ dW);
//                                               dQ = scale dS K;  dK = scale dSᵀ Q
void dragoman::learn_head(const Attending &a, int text, int head) {
    Desk &d = desk;
    const float *weights = kept_weights(a, text, head);
    View above = read(a.context, text, head, a.queries, a.width, d.above);
    d.sight.look(a, text, head);
    const int *until = d.sight.until.data();
    Bounds queries_of_keys = {nullptr, d.sight.from.data(), nullptr};
    write(View{weights, a.keys}.turned(), a.keys, a.queries, above, a.width, a.to_value, text, head, queries_of_keys);

    View values = d.turned.take_turned({a.value.data + offset(a.value, text, head), a.value.place}, a.keys, a.width);
    float *slopes = d.slopes.of(a.queries, a.keys);
    int width = d.slopes.width;
    products(above, a.queries, a.width, values, width, slopes, width, {until});
    for (int i = 0; i < a.queries; i++) {
        float *slope = slopes + i * width;
        const float *w = weights + i * a.keys;
        float mean = dot(w, slope, until[i]);
        for (int j = 0; j < until[i]; j++) slope[j] = w[j] * (slope[j] - mean);
        std::fill(slope + until[i], slope + width, 0.0f);
        if (a.to_bias) std::memcpy(a.to_bias + (w - a.weights), slope, a.keys * sizeof(float));
        for (int j = 0; j < until[i]; j++) slope[j] *= a.scale;
    }
    View keys = read(a.key, text, head, a.keys, a.width, d.keys);
    write({slopes, width}, a.queries, a.keys, keys, a.width, a.to_query, text, head, {nullptr, nullptr, until});
    View queries = read(a.query, text, head, a.queries, a.width, d.queries);
    write(View{slopes, width}.turned(), a.keys, a.queries, queries, a.width, a.to_key, text, head, queries_of_keys);
}
