// A whole sublayer of a Transformer block for training, forwards in one call and backwards in another:
//
//     x ─ norm ─ f ─ dropout ─ (+ x) ─ y        the norm first, or
//     x ─ f ─ dropout ─ (+ x) ─ norm ─ y        after the sum
//
// with f attention or the feed-forward network. A framework calls a function for each of a dozen operations, and threads
// that compute side by side wait for Python's lock at each; here they meet nobody. Large products are those of the BLAS
// that torch has loaded. What lies between them is computed row by row, and sums over rows run in one order for every
// column, so nothing hangs on the number of threads.

#include "heads.hpp"
#include "together.hpp"

using namespace dragoman;

extern "C" {

struct Around {
    int32_t threads, rows, width, norm_first, centred;  // centred: LayerNorm, else RMSNorm
    float epsilon;
    const float *gain, *shift;     // of the norm; shift may be null
    const uint8_t *kept;           // dropout's mask (N D), and what is kept is multiplied by `boost`; or null
    float boost;
    const float *x;                // (N D)
    float *y, *entered, *summed;   // (N D): what comes out; what f is given; what the later norm is given
    float *statistics;             // (N 2): the norm's mean and 1/σ of each row
    float *out;                    // (N D): on the way back, the slope of what f gives
    const float *above;            // (N D): the slope that comes in
    float *to_x, *to_entered;      // (N D)
    float *to_gain, *to_shift;     // (D)
};

struct Projection {                // y = x Wᵀ + b
    int32_t in, out;
    const float *weight, *bias;    // (out in), (out) or null
    float *to_weight, *to_bias;
};

struct FeedForward {
    Around around;
    Projection inward, outward;
    int32_t activation;
    float *hidden, *slopes;        // (N H): f(a) and f′(a); null for ReLU, whose slope can be told from f(a)
    float *to_hidden;              // (N H)
};

struct Reading {                   // attention within a sublayer
    Around around;
    Projection inward, outward;    // inward: to the query, and to key and value where the memory is its own
    Attending attending;
    float *projected, *context;    // (N 3D) or (N D); (N D)
    float *to_projected, *to_context;
    const float *more;             // a slope of `projected` that comes from elsewhere; or null
};

typedef void (*Product)(const char *, const char *, const int32_t *, const int32_t *, const int32_t *, const float *,
                        const float *, const int32_t *, const float *, const int32_t *, const float *, float *,
                        const int32_t *);

}  // extern "C"

namespace {

Product product = nullptr;  // sgemm_ of torch's BLAS

// ── matrices ────────────────────────────────────────────────────────────────────────────────

// C (m n) = op(A) op(B) (+ C), k terms; row by row, as BLAS would say of the turned ones
void multiply(bool turn_a, bool turn_b, int m, int n, int k, const float *a, const float *b, float *c, bool add = false) {
    const float one = 1.0f, start = add ? 1.0f : 0.0f;
    const int32_t steps_a = turn_a ? m : k, steps_b = turn_b ? k : n;
    product(turn_b ? "T" : "N", turn_a ? "T" : "N", &n, &m, &k, &one, b, &steps_b, a, &steps_a, &start, c, &n);
}

void project(const Projection &p, const float *x, int rows, int threads, float *y) {
    if (p.bias)
        for_each(rows, threads, [&](int r) { std::memcpy(y + static_cast<int64_t>(r) * p.out, p.bias, p.out * sizeof(float)); });
    multiply(false, true, rows, p.out, p.in, x, p.weight, y, p.bias != nullptr);
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
    multiply(true, false, p.out, p.in, rows, to_y, x, p.to_weight);
    if (p.to_bias) add_rows(to_y, rows, p.out, threads, p.to_bias);
    multiply(false, false, rows, p.in, p.out, to_y, p.weight, to_x);
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
    for_rows(a, [&](int r, int64_t at) { norm_row(a, a.x + at, a.entered + at, a.statistics + 2 * r); });
    return a.entered;
}

// to = x where it is kept, times `boost`
inline void keep(const Around &a, const float *x, int64_t at, float *to) {
    if (!a.kept && to != x) std::memcpy(to, x, a.width * sizeof(float));
    if (a.kept)
        for (int i = 0; i < a.width; i++) to[i] = a.kept[at + i] ? x[i] * a.boost : 0.0f;
}

// where f writes what is then added to x
inline float *left(const Around &a) { return a.norm_first ? a.y : a.summed; }

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
            norm_row_back(a, a.summed + at, a.above + at, a.statistics + 2 * r, past);
        }
        keep(a, past, at, a.out + at);
    });
    if (!a.norm_first) norm_parameters_back(a, a.summed, a.above);
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

}  // namespace

// ── what Python calls ───────────────────────────────────────────────────────────────────────

extern "C" {

void use_product(void *sgemm) { product = reinterpret_cast<Product>(sgemm); }

void feed_forward(const FeedForward *given) {
    const FeedForward &f = *given;
    const Around &a = f.around;
    FlushDenormals flush;
    project(f.inward, enter(a), a.rows, a.threads, f.hidden);
    for_each(a.rows, a.threads, [&](int r) {
        int64_t at = static_cast<int64_t>(r) * f.inward.out;
        bend(f.activation, f.hidden + at, f.slopes ? f.slopes + at : nullptr, f.inward.out);
    });
    project(f.outward, f.hidden, a.rows, a.threads, left(a));
    leave(a);
}

void feed_forward_back(const FeedForward *given) {
    const FeedForward &f = *given;
    const Around &a = f.around;
    FlushDenormals flush;
    leave_back(a);
    project_back(f.outward, f.hidden, a.rows, a.threads, a.out, f.to_hidden);
    for_each(a.rows, a.threads, [&](int r) {
        int64_t at = static_cast<int64_t>(r) * f.inward.out;
        const float *hidden = f.hidden + at, *slopes = f.slopes + at;
        float *to = f.to_hidden + at;
        if (f.slopes)
            for (int i = 0; i < f.inward.out; i++) to[i] *= slopes[i];
        else
            for (int i = 0; i < f.inward.out; i++) to[i] = hidden[i] > 0.0f ? to[i] : 0.0f;
    });
    project_back(f.inward, a.norm_first ? a.entered : a.x, a.rows, a.threads, f.to_hidden, a.to_entered);
    enter_back(a);
}

void read_memory(const Reading *given) {
    const Reading &m = *given;
    const Around &a = m.around;
    const Attending &w = m.attending;
    FlushDenormals flush;
    project(m.inward, enter(a), a.rows, a.threads, m.projected);
    for_each(w.texts * w.heads, a.threads, [&](int i) { read_head(w, i / w.heads, i % w.heads); });
    project(m.outward, m.context, a.rows, a.threads, left(a));
    leave(a);
}

void read_memory_back(const Reading *given) {
    const Reading &m = *given;
    const Around &a = m.around;
    const Attending &w = m.attending;
    FlushDenormals flush;
    leave_back(a);
    project_back(m.outward, m.context, a.rows, a.threads, a.out, m.to_context);
    for_each(w.texts * w.heads, a.threads, [&](int i) { learn_head(w, i / w.heads, i % w.heads); });
    for (int64_t i = 0, count = static_cast<int64_t>(a.rows) * m.inward.out; m.more && i < count; i++)
        m.to_projected[i] += m.more[i];
    project_back(m.inward, a.norm_first ? a.entered : a.x, a.rows, a.threads, m.to_projected, a.to_entered);
    enter_back(a);
}

}  // extern "C"
