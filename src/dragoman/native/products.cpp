// Large products of matrices, for training: those of the BLAS that torch has loaded, or our own.
//
// MKL takes the widest instructions on processors of its own maker alone; on others with AVX-512 what stands here is twice
// as fast. B is packed into panels of 64 columns, [k][64], one after the other, while all rows of A go by; so many
// terms at a time that it stays in the cache. Every sum runs over k in one order, so the bits do not hang on the number of threads.

#include "products.hpp"

#include "together.hpp"

using namespace dragoman;

typedef void (*Product)(const char *, const char *, const int32_t *, const int32_t *, const int32_t *, const float *,
                        const float *, const int32_t *, const float *, const int32_t *, const float *, float *,
                        const int32_t *);

namespace {

Product product = nullptr;  // sgemm_ of torch's BLAS, where it is the faster one

constexpr int DEPTH = 512;  // terms of a panel: 128 KiB, and of A no more lines than the nearest cache holds
constexpr int STRIP = 16;  // terms that are turned over at a time
constexpr int CHUNK = 256;  // rows that are turned over before they are multiplied
constexpr int SHARE = 128;  // of them, by one thread: what lies side by side is fetched ahead, if there is enough of it

struct Panel {
    const float *data;
    int terms, width;
};

// columns `first` on of op(B), and terms `from` on, with zeros beside where there are no more columns
void pack(bool turned, int n, int k, const float *b, int first, int from, const Panel &panel, float *to) {
    for (int j = panel.width; j < PANEL; j++)
        for (int t = 0; t < panel.terms; t++) to[static_cast<int64_t>(t) * PANEL + j] = 0.0f;
    if (!turned) {
        const float *row = b + static_cast<int64_t>(from) * n + first;
        for (int t = 0; t < panel.terms; t++, row += n, to += PANEL)
            if (panel.width == PANEL) std::memcpy(to, row, PANEL * sizeof(float));  // a size that is known takes no call
            else std::memcpy(to, row, panel.width * sizeof(float));
        return;
    }
    const float *rows = b + static_cast<int64_t>(first) * k + from;
    for (int t = 0; t < panel.terms; t += STRIP)  // both sides of a strip stay in the nearest cache
        turn(rows + t, k, panel.width, std::min(STRIP, panel.terms - t), to + static_cast<int64_t>(t) * PANEL, PANEL);
}

// R rows of C from one panel, which may be wider than what is left of C
template <int R>
void some_rows(const Panel &panel, const float *a, int64_t step, float *c, int n, const Starts &starts) {
    if (panel.width == PANEL) {
        for (int i = 0; i < PANEL; i += COLUMNS)
            some_products<R, COLUMNS / LANES>(a, step, panel.terms, panel.data + i, PANEL, c + i, n, 1, nullptr,
                                              starts.at(0, i).data, starts.step);
        return;
    }
    alignas(64) float sums[R * PANEL] = {};
    for (int r = 0; starts.data && r < R; r++) std::memcpy(sums + r * PANEL, starts.at(r, 0).data, panel.width * sizeof(float));
    if (panel.width <= COLUMNS / 2)
        some_products<R, COLUMNS / LANES / 2>(a, step, panel.terms, panel.data, PANEL, sums, PANEL, 1, nullptr, sums, PANEL);
    else
        for (int i = 0; i < panel.width; i += COLUMNS)
            some_products<R, COLUMNS / LANES>(a, step, panel.terms, panel.data + i, PANEL, sums + i, PANEL, 1, nullptr,
                                              sums + i, PANEL);
    for (int r = 0; r < R; r++) std::memcpy(c + static_cast<int64_t>(r) * n, sums + r * PANEL, panel.width * sizeof(float));
}

// as many rows at a time as there are registers for, then half as many; one by one each would read the whole panel
template <int R>
void all_rows(const Panel &panel, const float *a, int64_t step, int m, float *c, int n, const Starts &starts) {
    int r = 0;
    for (; r + R <= m; r += R)
        some_rows<R>(panel, a + r * step, step, c + static_cast<int64_t>(r) * n, n, starts.at(r, 0));
    if constexpr (R > 1)
        if (r < m) all_rows<R / 2>(panel, a + r * step, step, m - r, c + static_cast<int64_t>(r) * n, n, starts.at(r, 0));
}

// as many terms as fit, of one panel after the other, while all rows of A go by, `step` numbers from one to the next
void multiply_rows(bool turn_b, int m, int n, int k, const float *a, int64_t step, const float *b, float *c,
                   const Starts &starts, int threads) {
    for_each((n + PANEL - 1) / PANEL, threads, [&](int p) {
        static thread_local std::vector<float> room;
        if (room.size() < static_cast<size_t>(DEPTH) * PANEL) room.resize(static_cast<size_t>(DEPTH) * PANEL);
        int first = p * PANEL;
        for (int from = 0; from < k; from += DEPTH) {
            Panel panel = {room.data(), std::min(DEPTH, k - from), std::min(PANEL, n - first)};
            pack(turn_b, n, k, b, first, from, panel, room.data());
            all_rows<ROWS>(panel, a + from, step, m, c + first, n, (from ? Starts{c, n} : starts).at(0, first));
        }
    });
}

// A that lies the other way is turned over, CHUNK rows at a time. Its numbers would else come from as many lines of the
// cache as there are terms, a power of two apart where a model's width is one, and those lines push each other out.
void multiply_ourselves(bool turn_a, bool turn_b, int m, int n, int k, const float *a, const float *b, float *c,
                        const Starts &starts, int threads) {
    if (!turn_a) return multiply_rows(turn_b, m, n, k, a, k, b, c, starts, threads);
    static thread_local std::vector<float> room;
    const int64_t step = LANES * ((k + LANES - 1) / LANES | 1);  // an odd number of vectors is no power of two either
    if (room.size() < static_cast<size_t>(CHUNK * step)) room.resize(CHUNK * step);
    float *turned = room.data();
    for (int first = 0; first < m; first += CHUNK) {
        int rows = std::min(CHUNK, m - first);
        for_each((rows + SHARE - 1) / SHARE, threads, [&](int i) {
            int row = i * SHARE;
            turn(a + first + row, m, k, std::min(SHARE, rows - row), turned + row * step, step);
        });
        multiply_rows(turn_b, rows, n, k, turned, step, b, c + static_cast<int64_t>(first) * n, starts.at(first, 0), threads);
    }
}

// Fortran's way: what lies row by row are columns there, so the product is asked for turned over
void multiply_by_blas(bool turn_a, bool turn_b, int m, int n, int k, const float *a, const float *b, float *c, bool add) {
    const float one = 1.0f, start = add ? 1.0f : 0.0f;
    const int32_t steps_a = turn_a ? m : k, steps_b = turn_b ? k : n;
    product(turn_b ? "T" : "N", turn_a ? "T" : "N", &n, &m, &k, &one, b, &steps_b, a, &steps_a, &start, c, &n);
}

}  // namespace

void dragoman::multiply(bool turn_a, bool turn_b, int m, int n, int k, const float *a, const float *b, float *c,
                        const Starts &starts, int threads) {
    if (!product) return multiply_ourselves(turn_a, turn_b, m, n, k, a, b, c, starts, threads);
    if (starts.data && starts.data != c)
        for_each(m, threads, [&](int64_t r) { std::memcpy(c + r * n, starts.at(r, 0).data, n * sizeof(float)); });
    multiply_by_blas(turn_a, turn_b, m, n, k, a, b, c, starts.data);
}

// ── what Python calls ───────────────────────────────────────────────────────────────────────

extern "C" {

void use_product(void *sgemm) { product = reinterpret_cast<Product>(sgemm); }

// of `count` pairs of matrices, one after the other
void product_of(int32_t count, int32_t turn_a, int32_t turn_b, int32_t m, int32_t n, int32_t k, const float *a,
                const float *b, float *c, int32_t add, int32_t threads) {
    FlushDenormals flush;
    for (int64_t i = 0; i < count; i++)
        multiply(turn_a, turn_b, m, n, k, a + i * m * k, b + i * k * n, c + i * m * n,
                 add ? Starts{c + i * m * n, n} : Starts{}, threads);
}

int32_t made_by_intel() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("intel");
#else
    return 0;
#endif
}

}  // extern "C"
