// Products of a few rows with a packed matrix, and the small functions between them.
//
// A matrix W of `out` × `in` is packed once into panels of 64 outputs, so that a product reads memory from front to back:
//     float32   [out/64][in][64]            y = W x
//     int8      [out/64][in/4][64][4]       y = s_W s_x (W₈ x₈)      one scale for each output, one for each row of x
// A row's result is the same bits whatever other rows are computed with it: every sum runs over `in` in one order, and
// no scale is shared between rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define UNROLL _Pragma("GCC unroll 16")  // or the sums of a kernel would live in memory instead of registers

namespace dragoman {

constexpr int PANEL = 64;
constexpr int AHEAD = 4096, LINE = 64;  // bytes: how far ahead weights are fetched, and how many come at once
constexpr int ZERO = 128;  // what an activation of 0 is stored as: the machine multiplies unsigned with signed bytes

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 6, COLUMNS = 64;
#elif defined(__AVX2__)
constexpr int LANES = 8, ROWS = 6, COLUMNS = 16;
#else
constexpr int LANES = 4, ROWS = 2, COLUMNS = 8;
#endif
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
typedef int16_t Small;  // a whole number from 1 to 255: AVX2 multiplies 16 bits, and a row is widened once for all panels
#else
typedef uint8_t Small;
#endif
typedef float Lanes __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

inline Lanes load(const float *from) { return *reinterpret_cast<const Lanes *>(from); }
inline void store(float *to, Lanes x) { *reinterpret_cast<Lanes *>(to) = x; }
inline int round_up(int n, int to) { return (n + to - 1) / to * to; }

// While one of these lives, numbers too small to be written with all their digits count as zero: the processor takes a
// hundred times as long for each of them, and some are computed only to be thrown away.
struct FlushDenormals {
#if defined(__SSE2__)
    unsigned before = _mm_getcsr();
    FlushDenormals() { _mm_setcsr(before | 0x8040); }
    ~FlushDenormals() { _mm_setcsr(before); }
#else
    FlushDenormals() {}
#endif
};

// ── small functions ─────────────────────────────────────────────────────────────────────────

// e^x to the last digit but one; written so that a loop over it becomes vector instructions
inline float exponential(float x) {
    x = std::min(std::max(x, -87.0f), 88.0f);
    float n = std::floor(x * 1.44269504088896341f + 0.5f);
    float r = x - n * 0.693359375f;
    r -= n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, 4);
    return p * power;
}

// erf by Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most
inline float erf_of(float x) {
    float a = std::fabs(x), t = 1.0f / (1.0f + 0.3275911f * a);
    float p = ((((1.061405429f * t - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t + 0.254829592f) * t;
    return std::copysign(1.0f - p * exponential(-a * a), x);
}

inline float tanh_of(float x) { return 1.0f - 2.0f / (exponential(2.0f * x) + 1.0f); }

enum Activation { NONE = -1, RELU = 0, GELU = 1, GELU_TANH = 2, SILU = 3 };

template <Activation kind> inline float activate_one(float x) {
    if (kind == RELU) return std::max(x, 0.0f);
    if (kind == GELU) return 0.5f * x * (1.0f + erf_of(x * 0.70710678118654752f));
    if (kind == GELU_TANH) return 0.5f * x * (1.0f + tanh_of(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    return x / (1.0f + exponential(-x));
}

template <Activation kind> inline void activate_all(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = activate_one<kind>(x[i]);
}

inline void activate(int kind, float *x, int64_t n) {
    if (kind == RELU) return activate_all<RELU>(x, n);
    if (kind == GELU) return activate_all<GELU>(x, n);
    if (kind == GELU_TANH) return activate_all<GELU_TANH>(x, n);
    activate_all<SILU>(x, n);
}

inline float sum_of(Lanes x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps(reinterpret_cast<__m512>(x));
#else
    float sum = 0.0f;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
#endif
}

inline float most_of(Lanes x) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps(reinterpret_cast<__m512>(x));
#else
    float most = x[0];
    for (int i = 1; i < LANES; i++) most = std::max(most, static_cast<float>(x[i]));
    return most;
#endif
}

inline float dot(const float *a, const float *b, int n) {
    Lanes sum = {};
    int i = 0;
    for (; i + LANES <= n; i += LANES) sum += load(a + i) * load(b + i);
    float rest = 0.0f;
    for (; i < n; i++) rest += a[i] * b[i];
    return sum_of(sum) + rest;
}

inline void add_scaled(float *to, const float *x, float share, int n) {
    int i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, load(to + i) + share * load(x + i));
    for (; i < n; i++) to[i] += share * x[i];
}

// y[n] = Σⱼ shares[j] · rows[j][n]
template <int V> inline void sums_of_some(const float *rows, int n, const float *shares, int count, float *y) {
    Lanes sums[V];
    UNROLL
    for (int v = 0; v < V; v++) sums[v] = Lanes{};
    for (int j = 0; j < count; j++) {
        UNROLL
        for (int v = 0; v < V; v++) sums[v] += shares[j] * load(rows + static_cast<int64_t>(j) * n + v * LANES);
    }
    UNROLL
    for (int v = 0; v < V; v++) store(y + v * LANES, sums[v]);
}

inline void sums_of_rows(const float *rows, int n, const float *shares, int count, float *y) {
    int i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) sums_of_some<4>(rows + i, n, shares, count, y + i);
    for (; i + LANES <= n; i += LANES) sums_of_some<1>(rows + i, n, shares, count, y + i);
    for (; i < n; i++) {
        y[i] = 0.0f;
        for (int j = 0; j < count; j++) y[i] += shares[j] * rows[static_cast<int64_t>(j) * n + i];
    }
}

inline float largest(const float *x, int n) {
    float most = x[0];
    int i = 0;
    if (n >= LANES) {
        Lanes top = load(x);
        for (i = LANES; i + LANES <= n; i += LANES) {
            Lanes y = load(x + i);
            top = y > top ? y : top;
        }
        most = most_of(top);
    }
    for (; i < n; i++) most = std::max(most, x[i]);
    return most;
}

// x ← e^(x − shift), and their sum
inline float exponentials(float *x, int n, float shift) {
    for (int i = 0; i < n; i++) x[i] = exponential(x[i] - shift);
    Lanes sum = {};
    int i = 0;
    for (; i + LANES <= n; i += LANES) sum += load(x + i);
    float rest = 0.0f;
    for (; i < n; i++) rest += x[i];
    return sum_of(sum) + rest;
}

inline float sum_of_exponentials(const float *x, int n, float shift) {
    float part[LANES * 4];
    Lanes sum = {};
    float rest = 0.0f;
    for (int i = 0; i < n; i += LANES * 4) {
        int m = std::min(LANES * 4, n - i);
        for (int j = 0; j < m; j++) part[j] = exponential(x[i + j] - shift);
        int j = 0;
        for (; j + LANES <= m; j += LANES) sum += load(part + j);
        for (; j < m; j++) rest += part[j];
    }
    return sum_of(sum) + rest;
}

// to[c][r] = from[r][c], four by four
inline void turn(const float *from, int64_t step, int rows, int columns, float *to, int64_t to_step) {
    int whole_rows = 0, whole_columns = 0;
#if defined(__SSE2__)
    whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int r = 0; r < whole_rows; r += 4)
        for (int c = 0; c < whole_columns; c += 4) {
            __m128 four[4];
            for (int i = 0; i < 4; i++) four[i] = _mm_loadu_ps(from + (r + i) * step + c);
            _MM_TRANSPOSE4_PS(four[0], four[1], four[2], four[3]);
            for (int i = 0; i < 4; i++) _mm_storeu_ps(to + (c + i) * to_step + r, four[i]);
        }
#endif
    for (int r = 0; r < rows; r++)
        for (int c = r < whole_rows ? whole_columns : 0; c < columns; c++) to[c * to_step + r] = from[r * step + c];
}

// ── float32 ─────────────────────────────────────────────────────────────────────────────────

// y[R][V vectors] = x[R][in] · w[in][V vectors], with the sums beginning at `start` or at zero; rows of each are so many
// numbers apart, the terms of x `x_next`: a turned matrix costs nothing there. With each term the next LINES of the cache
// are fetched from `wanted` on, SPAN bytes apart
template <int R, int V, int LINES = 0, int SPAN = LINES * LINE>
inline void some_products(const float *x, int64_t x_step, int in, const float *w, int64_t w_step, float *y, int64_t y_step,
                          int64_t x_next = 1, const char *wanted = nullptr, const float *start = nullptr,
                          int64_t start_step = 0) {
    Lanes sums[R][V];
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
        for (int v = 0; v < V; v++) sums[r][v] = start ? load(start + r * start_step + v * LANES) : Lanes{};
    for (int k = 0; k < in; k++) {
        Lanes row[V];
        UNROLL
        for (int v = 0; v < V; v++) row[v] = load(w + k * w_step + v * LANES);
#if defined(__SSE2__)
        UNROLL
        for (int i = 0; i < LINES; i++) _mm_prefetch(wanted + static_cast<int64_t>(k) * SPAN + i * LINE, _MM_HINT_T0);
#endif
        UNROLL
        for (int r = 0; r < R; r++) {
            Lanes a = x[r * x_step + k * x_next] - Lanes{};
            UNROLL
            for (int v = 0; v < V; v++) sums[r][v] += a * row[v];
        }
    }
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
        for (int v = 0; v < V; v++) store(y + r * y_step + v * LANES, sums[r][v]);
}

// y[R][64] = x[R][in] · panel[in][64]. Weights come from far away, so those a little further on are fetched. Where many
// rows go by, the first ones fetch the whole next panel instead, each a PART of it: `part` says which, and PARTS that
// nothing is left to fetch. It is negative where the rows are few.
constexpr int TERM = PANEL * 4, PARTS = COLUMNS == PANEL ? TERM / LINE : 0;  // TERM: bytes of a panel for each term

template <int R> inline void panel_floats(const float *x, int in, const float *panel, float *y, int stride, int part) {
    constexpr int V = COLUMNS / LANES, LINES = std::max(1, COLUMNS * 4 / LINE);
    const char *next = reinterpret_cast<const char *>(panel) + static_cast<int64_t>(in) * TERM;
    if (part >= PARTS)
        some_products<R, V>(x, in, in, panel, PANEL, y, stride);
    else if (part >= 0)
        some_products<R, V, 1>(x, in, in, panel, PANEL, y, stride, 1, next + static_cast<int64_t>(part) * in * LINE);
    else
        for (int c = 0; c < PANEL; c += COLUMNS)
            some_products<R, V, LINES, TERM>(x, in, in, panel + c, PANEL, y + c, stride, 1,
                                             reinterpret_cast<const char *>(panel + c) + AHEAD);
}

// ── int8 ────────────────────────────────────────────────────────────────────────────────────

// y[R][64] = x₈[R][in] · panel[in/4][64][4], as whole numbers; `in` is a multiple of 4
template <int R> inline void panel_bytes(const Small *x, int in, const int8_t *panel, int32_t *y) {
#if defined(__AVX512VNNI__)
    __m512i sums[R][4];
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
        for (int v = 0; v < 4; v++) sums[r][v] = _mm512_setzero_si512();
    for (int k = 0; k < in; k += 4) {
        __m512i w[4];
        UNROLL
        for (int v = 0; v < 4; v++) w[v] = _mm512_loadu_si512(panel + k * PANEL + v * 64);
        UNROLL  // the next page is not fetched ahead unless it is said
        for (int v = 0; v < 4; v++) _mm_prefetch(panel + k * PANEL + v * 64 + AHEAD, _MM_HINT_T0);
        UNROLL
        for (int r = 0; r < R; r++) {
            int32_t four;
            std::memcpy(&four, x + r * in + k, 4);
            __m512i a = _mm512_set1_epi32(four);
            UNROLL
            for (int v = 0; v < 4; v++) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], a, w[v]);
        }
    }
    UNROLL
    for (int r = 0; r < R; r++)
        UNROLL
        for (int v = 0; v < 4; v++) _mm512_storeu_si512(y + r * PANEL + v * 16, sums[r][v]);
#elif defined(__AVX2__)
    // products of 16-bit numbers cannot overflow their 32-bit sums of two; a column's two halves are added at the end
    for (int c = 0; c < PANEL; c += 8) {
        __m256i sums[R][2];
        UNROLL
        for (int r = 0; r < R; r++) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
        for (int k = 0; k < in; k += 4) {
            __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(panel + k * PANEL + c * 4));
            __m256i first = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(w));
            __m256i second = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(w, 1));
            UNROLL
            for (int r = 0; r < R; r++) {
                int64_t four;
                std::memcpy(&four, x + r * in + k, 8);
                __m256i a = _mm256_set1_epi64x(four);
                sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(a, first));
                sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(a, second));
            }
        }
        UNROLL
        for (int r = 0; r < R; r++) {
            __m256i pairs = _mm256_hadd_epi32(sums[r][0], sums[r][1]);  // 0 1 4 5 2 3 6 7
            pairs = _mm256_permute4x64_epi64(pairs, 0xD8);
            _mm256_storeu_si256(reinterpret_cast<__m256i *>(y + r * PANEL + c), pairs);
        }
    }
#else
    UNROLL
    for (int r = 0; r < R; r++)
        for (int n = 0; n < PANEL; n++) y[r * PANEL + n] = 0;
    for (int k = 0; k < in; k += 4)
        UNROLL
        for (int r = 0; r < R; r++) {
            const Small *a = x + r * in + k;
            const int8_t *w = panel + k * PANEL;
            int32_t *sums = y + r * PANEL;
            for (int n = 0; n < PANEL; n++, w += 4) sums[n] += a[0] * w[0] + a[1] * w[1] + a[2] * w[2] + a[3] * w[3];
        }
#endif
}

// x₈ = round(127 x / max|x|) + 128, row by row; the scale that undoes it
inline float quantize_row(const float *x, int in, Small *bytes) {
    Lanes top = {};
    int i = 0;
    for (; i + LANES <= in; i += LANES) {
        Lanes y = load(x + i);
        y = y < 0 ? -y : y;
        top = y > top ? y : top;
    }
    float most = most_of(top);
    for (; i < in; i++) most = std::max(most, std::fabs(x[i]));
    float scale = most > 0.0f ? 127.0f / most : 0.0f;
    for (i = 0; i < in; i++) bytes[i] = static_cast<Small>(static_cast<int32_t>(std::floor(x[i] * scale + 0.5f)) + ZERO);
    for (; i < round_up(in, 4); i++) bytes[i] = ZERO;
    return most / 127.0f;
}

}  // namespace dragoman
