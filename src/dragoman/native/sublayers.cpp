// Sublayers of Transformer blocks in a row, for training: all of them forwards in one call and backwards in another. Each is
//
//     x ─ norm ─ f ─ dropout ─ (+ x) ─ y        the norm first, or
//     x ─ f ─ dropout ─ (+ x) ─ norm ─ y        after the sum
//
// with f attention or the feed-forward network. A framework calls a function for each of a dozen operations, and threads
// that compute side by side wait for Python's lock at each; here they meet nobody. Large products are those of
// products.cpp. What lies between them is computed row by row, and sums over rows run in one order for every
// column, so nothing hangs on the number of threads.

#include "heads.hpp"
#include "products.hpp"
#include "together.hpp"

using namespace dragoman;

extern "C" {

enum Kind { FEEDS, READS_ITSELF, READS_SOURCE };

// parameters of a sublayer, and their slopes, by place; null for what it does not have. Weights that read the same input
// are joined: their slopes must lie one after the other, and so must those of their biases.
enum Place { GAIN, SHIFT, INWARD, INWARD_BIAS = 5, OUTWARD = 8, OUTWARD_BIAS, PLACES };

struct Sublayer {
    int32_t kind, norm_first, centred, activation, heads, inner;  // centred: LayerNorm, else RMSNorm; inner: width within f
    float epsilon, scale, boost;
    const uint8_t *kept;               // dropout's mask (N D), and what is kept is multiplied by `boost`; or null
    int32_t keys;                      // of the source
    Heads key, value, to_key, to_value;
};

struct Shown {                         // what a query may see: (B H Q K) by its steps, 0 where it is hidden; or null
    const uint8_t *mask;
    int64_t steps[4];
};

struct Run {
    int32_t threads, texts, length, width, count;
    const Sublayer *sublayers;
    const float *const *parameters;    // (count PLACES)
    float *const *slopes;              // …
    Shown own, source;
    const float *bias;                 // added to the scores of those that read themselves; or null
    int64_t bias_steps[4];
    const float *x;                    // (N D), N = texts × length
    float *y, *projected;              // (N D); (L N 3E): queries, keys and values of the L that read themselves
    float *room, *scratch;             // as `measure` says: what is kept for the way back, what is not
    const float *above, *more;         // the way back: slopes of y, and of `projected` or null
    float *to_x, *to_bias;             // (N D); (B H T T) or null
};

}  // extern "C"

namespace {

struct Around {                        // what stands around f
    int32_t threads, rows, width, norm_first, centred;
    float epsilon;
    const float *gain, *shift;
    const uint8_t *kept;
    float boost;
    const float *x;
    float *y, *between, *statistics;   // between: what f is given by the norm, or what it gives to the norm, (N D); (N 2)
    const float *above;
    float *out, *to_x, *to_entered;    // slopes: of what f gives, of x, of what f is given, (N D)
    float *to_gain, *to_shift;
};

struct Projection {                    // y = x Wᵀ + b
    int32_t in, out;
    const float *weight, *bias;        // (out in), (out) or null
    float *to_weight, *to_bias;
};

// ── matrices ────────────────────────────────────────────────────────────────────────────────

void project(const Projection &p, const float *x, int rows, int threads, float *y) {
    multiply(false, true, rows, p.out, p.in, x, p.weight, y, {p.bias, 0}, threads);
}

constexpr int COLUMNS_AT_ONCE = 64;

// call(first, count) for every few columns
template <class Work> void for_columns(int columns, int threads, const Work &work) {
    for_each((columns + COLUMNS_AT_ONCE - 1) / COLUMNS_AT_ONCE, threads, [&](int i) {
        int first = i * COLUMNS_AT_ONCE;
        work(first, std::min(COLUMNS_AT_ONCE, columns - first));
    });
}

void add_rows(const float *x, int rows, int width, int threads, float *sums) {
    for_columns(width, threads, [&](int first, int count) {
        float found[COLUMNS_AT_ONCE] = {};
        for (int r = 0; r < rows; r++) {
            const float *row = x + static_cast<int64_t>(r) * width + first;
            for (int i = 0; i < count; i++) found[i] += row[i];
        }
        std::memcpy(sums + first, found, count * sizeof(float));
    });
}

// dW = dYᵀ X;  db = Σ dY;  dX = dY W
void project_back(const Projection &p, const float *x, int rows, int threads, const float *to_y, float *to_x) {
    multiply(true, false, p.out, p.in, rows, to_y, x, p.to_weight, {}, threads);
    if (p.to_bias) add_rows(to_y, rows, p.out, threads, p.to_bias);
    multiply(false, false, rows, p.in, p.out, to_y, p.weight, to_x, {}, threads);
}

// ── norms ───────────────────────────────────────────────────────────────────────────────────

inline float sum_of_row(const float *x, int n) {
    Lanes sum = {};
    int i = 0;
    for (; i + LANES <= n; i += LANES) sum += load(x + i);
    float rest = 0.0f;
    for (; i < n; i++) rest += x[i];
    return sum_of(sum) + rest;
}

// y = (x − μ) / σ · gain + shift
void norm_row(const Around &a, const float *x, float *y, float *statistics) {
    float mean = a.centred ? sum_of_row(x, a.width) / a.width : 0.0f;
    for (int i = 0; i < a.width; i++) y[i] = x[i] - mean;
    float share = 1.0f / std::sqrt(dot(y, y, a.width) / a.width + a.epsilon);
    for (int i = 0; i < a.width; i++) y[i] *= share * a.gain[i];
    if (a.shift)
        for (int i = 0; i < a.width; i++) y[i] += a.shift[i];
    statistics[0] = mean, statistics[1] = share;
}

// with x̂ = (x − μ)/σ and g = dy · gain:   dx = (g − mean(g) − x̂ mean(g x̂)) / σ, added to `to_x`; RMSNorm has no mean(g)
void norm_row_back(const Around &a, const float *x, const float *to_y, const float *statistics, float *to_x) {
    float mean = statistics[0], share = statistics[1];
    Lanes sums = {}, along = {};
    float rest = 0.0f, rest_along = 0.0f;
    int i = 0;
    for (; i + LANES <= a.width; i += LANES) {
        Lanes g = load(to_y + i) * load(a.gain + i);
        sums += g, along += g * (load(x + i) - mean);
    }
    for (; i < a.width; i++) rest += to_y[i] * a.gain[i], rest_along += to_y[i] * a.gain[i] * (x[i] - mean);
    float all = a.centred ? (sum_of(sums) + rest) / a.width : 0.0f;
    float bent = (sum_of(along) + rest_along) * share * share / a.width;
    for (i = 0; i < a.width; i++) to_x[i] += share * (to_y[i] * a.gain[i] - all - (x[i] - mean) * bent);
}

// d gain = Σ dy x̂;  d shift = Σ dy
void norm_parameters_back(const Around &a, const float *x, const float *to_y) {
    for_columns(a.width, a.threads, [&](int first, int count) {
        float gain[COLUMNS_AT_ONCE] = {}, shift[COLUMNS_AT_ONCE] = {};
        for (int r = 0; r < a.rows; r++) {
            const float *row = x + static_cast<int64_t>(r) * a.width + first, *slope = to_y + (row - x);
            float mean = a.statistics[2 * r], share = a.statistics[2 * r + 1];
            for (int i = 0; i < count; i++) gain[i] += slope[i] * (row[i] - mean) * share, shift[i] += slope[i];
        }
        std::memcpy(a.to_gain + first, gain, count * sizeof(float));
        if (a.to_shift) std::memcpy(a.to_shift + first, shift, count * sizeof(float));
    });
}

// ── what is around f ────────────────────────────────────────────────────────────────────────

template <class Work> void for_rows(const Around &a, const Work &work) {
    for_each(a.rows, a.threads, [&](int r) { work(r, static_cast<int64_t>(r) * a.width); });
}

const float *enter(const Around &a) {
    if (!a.norm_first) return a.x;
    for_rows(a, [&](int r, int64_t at) { norm_row(a, a.x + at, a.between + at, a.statistics + 2 * r); });
    return a.between;
}

// to = x where it is kept, times `boost`
inline void keep(const Around &a, const float *x, int64_t at, float *to) {
    if (!a.kept && to != x) std::memcpy(to, x, a.width * sizeof(float));
    if (a.kept)
        for (int i = 0; i < a.width; i++) to[i] = a.kept[at + i] ? x[i] * a.boost : 0.0f;
}

// where f writes what is then added to x
inline float *left(const Around &a) { return a.norm_first ? a.y : a.between; }

void leave(const Around &a) {
    for_rows(a, [&](int r, int64_t at) {
        float *to = left(a) + at;
        keep(a, to, at, to);
        for (int i = 0; i < a.width; i++) to[i] += a.x[at + i];
        if (!a.norm_first) norm_row(a, to, a.y + at, a.statistics + 2 * r);
    });
}

// what goes past f, in `to_x`; what goes into it, in `out`
void leave_back(const Around &a) {
    for_rows(a, [&](int r, int64_t at) {
        float *past = a.to_x + at;
        if (a.norm_first) std::memcpy(past, a.above + at, a.width * sizeof(float));
        else {
            std::fill(past, past + a.width, 0.0f);
            norm_row_back(a, a.between + at, a.above + at, a.statistics + 2 * r, past);
        }
        keep(a, past, at, a.out + at);
    });
    if (!a.norm_first) norm_parameters_back(a, a.between, a.above);
}

void enter_back(const Around &a) {
    for_rows(a, [&](int r, int64_t at) {
        if (a.norm_first) norm_row_back(a, a.x + at, a.to_entered + at, a.statistics + 2 * r, a.to_x + at);
        else
            for (int i = 0; i < a.width; i++) a.to_x[at + i] += a.to_entered[at + i];
    });
    if (a.norm_first) norm_parameters_back(a, a.x, a.to_entered);
}

// ── activations with their slopes, which share an exponential ───────────────────────────────

template <Activation kind> inline void bend_one(float x, float &y, float &slope) {
    if (kind == GELU) {  // Φ(x) by erf as in kernels.hpp, whose e^(−x²/2) is also in φ(x)
        float a = std::fabs(x) * 0.70710678118654752f, t = 1.0f / (1.0f + 0.3275911f * a), bell = exponential(-a * a);
        float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
        float below = 0.5f + std::copysign(0.5f - 0.5f * p * bell, x);
        y = x * below, slope = below + x * bell * 0.3989422804014327f;
    } else if (kind == GELU_TANH) {
        float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x), bent = tanh_of(inner);
        y = 0.5f * x * (1.0f + bent);
        slope = 0.5f * (1.0f + bent) + 0.5f * x * (1.0f - bent * bent) * 0.7978845608028654f * (1.0f + 0.134145f * x * x);
    } else {
        float gate = 1.0f / (1.0f + exponential(-x));
        y = x * gate, slope = gate * (1.0f + x * (1.0f - gate));
    }
}

template <Activation kind> void bend_all(float *x, float *slopes, int n) {
    for (int i = 0; i < n; i++) bend_one<kind>(x[i], x[i], slopes[i]);
}

void bend(int kind, float *x, float *slopes, int n) {
    if (kind == RELU) return activate(kind, x, n);
    if (kind == GELU) return bend_all<GELU>(x, slopes, n);
    if (kind == GELU_TANH) return bend_all<GELU_TANH>(x, slopes, n);
    bend_all<SILU>(x, slopes, n);
}

// ── where everything lies ───────────────────────────────────────────────────────────────────

struct Shelf {                         // hands out places one after the other, each where a vector may begin
    float *first;
    int64_t used = 0;

    float *take(int64_t count) {
        float *place = first ? first + used : nullptr;
        used += (count + LANES - 1) / LANES * LANES;
        return place;
    }
};

struct Kept {                          // of one sublayer for the way back
    float *y, *between, *statistics;
    float *hidden, *slopes;            // (N H): f(a), and f′(a) except for ReLU, whose slope can be told from f(a)
    float *queries, *context, *weights;  // (N E); (N E); (B H Q K)
};

inline int64_t rows_of(const Run &run) { return static_cast<int64_t>(run.texts) * run.length; }
inline int keys_of(const Run &run, const Sublayer &s) { return s.kind == READS_SOURCE ? s.keys : run.length; }
inline int64_t looks_of(const Run &run, const Sublayer &s) { return rows_of(run) * s.heads * keys_of(run, s); }

std::vector<Kept> shelve(const Run &run, Shelf &shelf) {
    std::vector<Kept> all(run.count);
    int64_t rows = rows_of(run);
    for (int i = 0; i < run.count; i++) {
        const Sublayer &s = run.sublayers[i];
        Kept &k = all[i];
        k.y = i + 1 < run.count ? shelf.take(rows * run.width) : run.y;
        k.between = shelf.take(rows * run.width), k.statistics = shelf.take(2 * rows);
        if (s.kind == FEEDS) {
            k.hidden = shelf.take(rows * s.inner);
            k.slopes = s.activation == RELU ? nullptr : shelf.take(rows * s.inner);
        } else {
            if (s.kind == READS_SOURCE) k.queries = shelf.take(rows * s.inner);
            k.context = shelf.take(rows * s.inner), k.weights = shelf.take(looks_of(run, s));
        }
    }
    return all;
}

struct Scratch {                       // of whichever sublayer is computed now
    float *joined;                     // weights and biases that read the same input
    float *out, *to_entered, *to_hidden, *to_projected, *to_context, *to_bias, *passing[2];
};

Scratch lay_out(const Run &run, Shelf &shelf) {
    int64_t rows = rows_of(run), joined = 0, hidden = 0, projected = 0, context = 0, looks = 0;
    for (int i = 0; i < run.count; i++) {
        const Sublayer &s = run.sublayers[i];
        if (s.kind == FEEDS) hidden = std::max<int64_t>(hidden, s.inner);
        else context = std::max<int64_t>(context, s.inner);
        if (s.kind == READS_SOURCE) projected = std::max<int64_t>(projected, s.inner);
        if (s.kind != READS_ITSELF) continue;
        projected = std::max<int64_t>(projected, 3 * s.inner);
        joined = std::max(joined, 3 * static_cast<int64_t>(s.inner) * (run.width + 1));
        if (run.to_bias) looks = std::max(looks, looks_of(run, s));
    }
    Scratch made = {};
    made.joined = shelf.take(joined);
    if (!run.above) return made;
    made.out = shelf.take(rows * run.width), made.to_entered = shelf.take(rows * run.width);
    made.to_hidden = shelf.take(rows * hidden);
    made.to_projected = shelf.take(rows * projected), made.to_context = shelf.take(rows * context);
    made.to_bias = shelf.take(looks);
    for (float *&one : made.passing) one = shelf.take(rows * run.width);
    return made;
}

// ── one sublayer of a run ───────────────────────────────────────────────────────────────────

struct Sitting {                       // a sublayer, and all that it works on
    const Run &run;
    const Sublayer &is;
    const Kept &kept;
    const Scratch &scratch;
    Around around;
    float *projected;                  // (N 3E) or (N E)
    const float *more;
    const float *const *parameters;
    float *const *slopes;

    const float *entered() const { return around.norm_first ? around.between : around.x; }
};

struct Places {                        // where all of a run lies
    const Run &run;
    std::vector<Kept> kept;
    Scratch scratch;
};

Places places_of(const Run &run) {
    Shelf room = {run.room}, passing = {run.scratch};
    return {run, shelve(run, room), lay_out(run, passing)};
}

Sitting sit(const Places &places, int i) {
    const Run &run = places.run;
    const Kept &kept = places.kept[i];
    const Scratch &scratch = places.scratch;
    const float *x = i ? places.kept[i - 1].y : run.x;
    const Sublayer &s = run.sublayers[i];
    const float *const *p = run.parameters + static_cast<int64_t>(PLACES) * i;
    float *const *slopes = run.slopes ? run.slopes + static_cast<int64_t>(PLACES) * i : nullptr;
    Around around = {run.threads, static_cast<int32_t>(rows_of(run)), run.width, s.norm_first, s.centred, s.epsilon};
    around.gain = p[GAIN], around.shift = p[SHIFT], around.kept = s.kept, around.boost = s.boost;
    around.x = x, around.y = kept.y, around.between = kept.between, around.statistics = kept.statistics;
    around.out = scratch.out, around.to_entered = scratch.to_entered;
    if (slopes) around.to_gain = slopes[GAIN], around.to_shift = slopes[SHIFT];
    int before = 0;  // sublayers that read themselves
    for (int j = 0; j < i; j++) before += run.sublayers[j].kind == READS_ITSELF;
    int64_t at = before * rows_of(run) * 3 * s.inner;
    float *projected = s.kind == READS_ITSELF ? run.projected + at : kept.queries;
    const float *more = s.kind == READS_ITSELF && run.more ? run.more + at : nullptr;
    return {run, s, kept, scratch, around, projected, more, p, slopes};
}

Projection inward_of(const Sitting &s) {
    int in = s.run.width, out = s.is.inner, parts = s.is.kind == READS_ITSELF ? 3 : 1;
    Projection made = {in, parts * out, s.parameters[INWARD], s.parameters[INWARD_BIAS], nullptr, nullptr};
    if (s.slopes) made.to_weight = s.slopes[INWARD], made.to_bias = s.slopes[INWARD_BIAS];
    if (parts == 1) return made;
    float *weight = s.scratch.joined, *bias = weight + static_cast<int64_t>(3) * out * in;
    for (int part = 0; part < parts; part++) {
        std::memcpy(weight + static_cast<int64_t>(part) * out * in, s.parameters[INWARD + part], sizeof(float) * out * in);
        if (made.bias) std::memcpy(bias + part * out, s.parameters[INWARD_BIAS + part], sizeof(float) * out);
    }
    made.weight = weight, made.bias = made.bias ? bias : nullptr;
    return made;
}

Projection outward_of(const Sitting &s) {
    Projection made = {s.is.inner, s.run.width, s.parameters[OUTWARD], s.parameters[OUTWARD_BIAS], nullptr, nullptr};
    if (s.slopes) made.to_weight = s.slopes[OUTWARD], made.to_bias = s.slopes[OUTWARD_BIAS];
    return made;
}

// heads side by side in each place, `step` numbers from one place to the next
Heads side_by_side(const Sitting &s, float *first, int64_t step) {
    return {first, s.run.length * step, s.is.inner / s.is.heads, step};
}

Attending attention_of(const Sitting &s) {
    const Run &run = s.run;
    bool own = s.is.kind == READS_ITSELF;
    int inner = s.is.inner, step = own ? 3 * inner : inner;
    Attending made = {1, run.texts, s.is.heads, run.length, keys_of(run, s.is), inner / s.is.heads, s.is.scale};
    made.query = side_by_side(s, s.projected, step);
    made.key = own ? side_by_side(s, s.projected + inner, step) : s.is.key;
    made.value = own ? side_by_side(s, s.projected + 2 * inner, step) : s.is.value;
    made.context = side_by_side(s, s.kept.context, inner);
    const Shown &shown = own ? run.own : run.source;
    made.mask = shown.mask, made.bias = own ? run.bias : nullptr;
    std::copy(shown.steps, shown.steps + 4, made.mask_steps);
    std::copy(run.bias_steps, run.bias_steps + 4, made.bias_steps);
    made.weights = s.kept.weights;
    return made;
}

void feed(const Sitting &s) {
    const Around &a = s.around;
    project(inward_of(s), enter(a), a.rows, a.threads, s.kept.hidden);
    for_each(a.rows, a.threads, [&](int r) {
        int64_t at = static_cast<int64_t>(r) * s.is.inner;
        bend(s.is.activation, s.kept.hidden + at, s.kept.slopes ? s.kept.slopes + at : nullptr, s.is.inner);
    });
    project(outward_of(s), s.kept.hidden, a.rows, a.threads, left(a));
    leave(a);
}

void feed_back(const Sitting &s) {
    const Around &a = s.around;
    leave_back(a);
    project_back(outward_of(s), s.kept.hidden, a.rows, a.threads, a.out, s.scratch.to_hidden);
    for_each(a.rows, a.threads, [&](int r) {
        int64_t at = static_cast<int64_t>(r) * s.is.inner;
        const float *hidden = s.kept.hidden + at, *slopes = s.kept.slopes + at;
        float *to = s.scratch.to_hidden + at;
        if (s.kept.slopes)
            for (int i = 0; i < s.is.inner; i++) to[i] *= slopes[i];
        else
            for (int i = 0; i < s.is.inner; i++) to[i] = hidden[i] > 0.0f ? to[i] : 0.0f;
    });
    project_back(inward_of(s), s.entered(), a.rows, a.threads, s.scratch.to_hidden, a.to_entered);
    enter_back(a);
}

void read(const Sitting &s) {
    const Around &a = s.around;
    project(inward_of(s), enter(a), a.rows, a.threads, s.projected);
    Attending w = attention_of(s);
    for_each(w.texts * w.heads, a.threads, [&](int i) { read_head(w, i / w.heads, i % w.heads); });
    project(outward_of(s), s.kept.context, a.rows, a.threads, left(a));
    leave(a);
}

// `adds`: to the slope of the bias, which those behind have begun
void read_back(const Sitting &s, bool adds) {
    const Around &a = s.around;
    bool own = s.is.kind == READS_ITSELF;
    int inner = s.is.inner, step = own ? 3 * inner : inner;
    float *to_projected = s.scratch.to_projected, *total = own ? s.run.to_bias : nullptr;
    leave_back(a);
    project_back(outward_of(s), s.kept.context, a.rows, a.threads, a.out, s.scratch.to_context);
    Attending w = attention_of(s);
    w.context = side_by_side(s, s.scratch.to_context, inner);
    w.to_query = side_by_side(s, to_projected, step);
    w.to_key = own ? side_by_side(s, to_projected + inner, step) : s.is.to_key;
    w.to_value = own ? side_by_side(s, to_projected + 2 * inner, step) : s.is.to_value;
    w.to_bias = total && adds ? s.scratch.to_bias : total;
    for_each(w.texts * w.heads, a.threads, [&](int i) { learn_head(w, i / w.heads, i % w.heads); });
    for (int64_t i = 0, count = looks_of(s.run, s.is); total && adds && i < count; i++) total[i] += w.to_bias[i];
    for (int64_t i = 0, count = static_cast<int64_t>(a.rows) * step; s.more && i < count; i++) to_projected[i] += s.more[i];
    project_back(inward_of(s), s.entered(), a.rows, a.threads, to_projected, a.to_entered);
    enter_back(a);
}

}  // namespace

// ── what Python calls ───────────────────────────────────────────────────────────────────────

extern "C" {

// how many numbers there must be in `room` and in `scratch`
void measure(const Run *run, int64_t *room, int64_t *scratch) {
    Shelf kept = {nullptr}, passing = {nullptr};
    shelve(*run, kept), lay_out(*run, passing);
    *room = kept.used, *scratch = passing.used;
}

void forwards(const Run *run) {
    FlushDenormals flush;
    Places places = places_of(*run);
    for (int i = 0; i < run->count; i++) {
        Sitting s = sit(places, i);
        s.is.kind == FEEDS ? feed(s) : read(s);
    }
}

void backwards(const Run *run) {
    FlushDenormals flush;
    Places places = places_of(*run);
    float *const *passing = places.scratch.passing;
    bool adds = false;
    for (int i = run->count - 1; i >= 0; i--) {
        Sitting s = sit(places, i);
        s.around.above = i + 1 < run->count ? passing[(i + 1) % 2] : run->above;
        s.around.to_x = i ? passing[i % 2] : run->to_x;
        s.is.kind == FEEDS ? feed_back(s) : read_back(s, adds);
        adds = adds || s.is.kind == READS_ITSELF;
    }
}

}  // extern "C"
