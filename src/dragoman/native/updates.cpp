// What is done once to every number of a model in each step, for all of its tensors in one call. A framework calls a
// function for each tensor and each operation; a small model has a hundred tensors of a few thousand numbers.
//
// Tensors are gone through piece by piece. A piece is computed by itself and sums of pieces are added in their order,
// so nothing hangs on the number of threads.

#include "together.hpp"

using namespace dragoman;

extern "C" {

struct Tensors {
    int32_t threads, count;
    const int64_t *sizes;
    float *const *data;
};

struct Adam {
    Tensors parameters;
    const float *const *gradients;
    float *const *means, *const *squares;
    float first, second;    // β₁, β₂
    float rate;             // that of the step over 1 − β₁ⁿ
    float correction;       // √(1 − β₂ⁿ)
    float epsilon;
    float kept;             // share of a parameter that weight decay leaves
    float pull;             // weight decay as a part of the gradient (Adam's, not AdamW's)
};

}  // extern "C"

namespace {

constexpr int64_t PIECE = 1 << 14;  // numbers: four of them fit into the second cache

struct Piece {
    int tensor;
    int64_t first, size;
};

template <class Work> void for_pieces(const Tensors &all, const Work &work) {
    std::vector<Piece> pieces;
    for (int t = 0; t < all.count; t++)
        for (int64_t first = 0; first < all.sizes[t]; first += PIECE)
            pieces.push_back({t, first, std::min(PIECE, all.sizes[t] - first)});
    for_each(static_cast<int>(pieces.size()), all.threads, [&](int i) { work(i, pieces[i]); });
}

int64_t count_pieces(const Tensors &all) {
    int64_t count = 0;
    for (int t = 0; t < all.count; t++) count += (all.sizes[t] + PIECE - 1) / PIECE;
    return count;
}

void adam_piece(const Adam &a, float *p, const float *gradient, float *mean, float *square, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] + a.pull * p[i];
        mean[i] += (1.0f - a.first) * (g - mean[i]);
        square[i] = a.second * square[i] + (1.0f - a.second) * g * g;
        p[i] = a.kept * p[i] - a.rate * mean[i] / (std::sqrt(square[i]) / a.correction + a.epsilon);
    }
}

}  // namespace

// ── what Python calls ───────────────────────────────────────────────────────────────────────

extern "C" {

// Σ x² over all numbers of all tensors
double sum_of_squares(const Tensors *given) {
    std::vector<double> sums(count_pieces(*given));
    for_pieces(*given, [&](int i, const Piece &piece) {
        const float *x = given->data[piece.tensor] + piece.first;
        sums[i] = dot(x, x, static_cast<int>(piece.size));  // infinite where torch's is, too
    });
    double total = 0.0;
    for (double sum : sums) total += sum;
    return total;
}

void multiply_all(const Tensors *given, float share) {
    for_pieces(*given, [&](int, const Piece &piece) {
        float *x = given->data[piece.tensor] + piece.first;
        for (int64_t i = 0; i < piece.size; i++) x[i] *= share;
    });
}

// to ← to + more
void add_all(const Tensors *to, const float *const *more) {
    for_pieces(*to, [&](int, const Piece &piece) {
        float *x = to->data[piece.tensor] + piece.first;
        const float *y = more[piece.tensor] + piece.first;
        for (int64_t i = 0; i < piece.size; i++) x[i] += y[i];
    });
}

// m ← β₁ m + (1−β₁) g;   v ← β₂ v + (1−β₂) g²;   p ← kept · p − rate · m̂ / (√v̂ + ε)
void adam(const Adam *given) {
    for_pieces(given->parameters, [&](int, const Piece &piece) {
        int t = piece.tensor;
        int64_t at = piece.first;
        adam_piece(*given, given->parameters.data[t] + at, given->gradients[t] + at, given->means[t] + at,
                   given->squares[t] + at, piece.size);
    });
}

}  // extern "C"
