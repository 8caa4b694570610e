// Threads of training: those that torch computes with, since two teams would be in each other's way.
#pragma once

#include <atomic>

#include "kernels.hpp"

namespace dragoman {

typedef void (*Parallel)(void (*work)(void *), void *data, unsigned threads, unsigned flags);
extern Parallel together;  // GOMP_parallel of the OpenMP that torch has loaded; null where there is none

struct Job {
    std::atomic<int> next{0};
    int count, step;
    const void *work;
    void (*call)(const void *, int);
    void run() {
        FlushDenormals flush;
        for (int first; (first = next.fetch_add(step)) < count;)
            for (int i = first; i < std::min(count, first + step); i++) call(work, i);
    }
};

template <class Work> void for_each(int count, int threads, const Work &work) {
    Job job;
    job.count = count, job.step = std::max(1, count / (8 * threads)), job.work = &work;
    job.call = [](const void *work, int i) { (*static_cast<const Work *>(work))(i); };
    if (!together || threads == 1 || count == 1) return job.run();
    together([](void *job) { static_cast<Job *>(job)->run(); }, &job, threads, 0);
}

}  // namespace dragoman
