// What training asks for again and again and a framework takes long for: attention over short texts, forwards and
// backwards, and the slope of cross-entropy.
//
// Every head of a text and every row of logits is computed by itself, so nothing hangs on the number of threads.

#include "heads.hpp"
#include "together.hpp"

using namespace dragoman;

Parallel dragoman::together = nullptr;

namespace {

// nats of one row of logits z, which becomes the slope: softmax(z) − ε/V, less 1−ε where the wanted token is
double learn_row(float *z, int64_t vocabulary, int64_t wanted, float smoothing, bool learns) {
    int n = static_cast<int>(vocabulary);
    float most = largest(z, n), right = z[wanted], total = 0.0f;
    Lanes sums = {};
    int i = 0;
    for (; i + LANES <= n; i += LANES) sums += load(z + i);
    for (; i < n; i++) total += z[i];
    double mean = (static_cast<double>(sum_of(sums)) + total) / n;
    float sum = learns ? exponentials(z, n, most) : sum_of_exponentials(z, n, most);
    if (learns) {
        float share = 1.0f / sum, even = smoothing / n;
        for (i = 0; i < n; i++) z[i] = z[i] * share - even;
        z[wanted] -= 1.0f - smoothing;
    }
    return most + std::log(sum) - (1.0 - smoothing) * right - smoothing * mean;
}

}  // namespace

// ── what Python calls ───────────────────────────────────────────────────────────────────────

extern "C" {

void use_parallel(void *parallel) { together = reinterpret_cast<Parallel>(parallel); }

void attend(const Attending *given) {
    const Attending &a = *given;
    for_each(a.texts * a.heads, a.threads, [&](int i) { read_head(a, i / a.heads, i % a.heads); });
}

void attend_backward(const Attending *given) {
    const Attending &a = *given;
    for_each(a.texts * a.heads, a.threads, [&](int i) { learn_head(a, i / a.heads, i % a.heads); });
}

// nats (rows) of logits (rows, vocabulary), which become their slopes where something is to be learned
void cross_entropy(float *logits, int64_t rows, int64_t vocabulary, const int64_t *wanted, float smoothing,
                   int32_t learns, int32_t threads, double *nats) {
    for_each(static_cast<int>(rows), threads, [&](int r) {
        nats[r] = learn_row(logits + r * vocabulary, vocabulary, wanted[r], smoothing, learns);
    });
}

}  // extern "C"
