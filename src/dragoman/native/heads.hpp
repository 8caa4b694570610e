// Attention of one head over one short text, forwards and backwards.
#pragma once

#include "kernels.hpp"

extern "C" {

struct Heads {               // (B H N d), wherever it lies; the d numbers of a head are neighbours
    float *data;
    int64_t text, head, place;  // steps from one to the next
};

struct Attending {
    int32_t threads, texts, heads, queries, keys, width;
    float scale;
    Heads query, key, value, context;
    const uint8_t *mask;     // (B H Q K) by its steps, 0 where it is hidden; or null
    int64_t mask_steps[4];
    const float *bias;       // … added to the scores; or null
    int64_t bias_steps[4];
    float *weights;          // (B H Q K), kept for the way back; or null
    Heads to_query, to_key, to_value;  // the way back: their gradients, and in `context` the one that comes in
    float *to_bias;          // (B H Q K) or null
};

}  // extern "C"

namespace dragoman {

void read_head(const Attending &a, int text, int head);
void learn_head(const Attending &a, int text, int head);

}  // namespace dragoman
