// A few threads that work on one call together. Between two parts of a step they wait without sleeping, since the next
// part comes within microseconds; only when nothing has come for a while do they sleep.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels.hpp"

namespace dragoman {

constexpr int SPINS = 4000;  // looks before sleeping, about a fifth of a millisecond

inline void breathe() {
#if defined(__SSE2__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

// A helper that wakes on the processor of the one who waits for it makes both wait: it goes to another, and stays there.
inline void move_away(int from, int steps) {
#if defined(__linux__)
    cpu_set_t allowed, chosen;
    if (from < 0 || sched_getaffinity(0, sizeof(allowed), &allowed)) return;
    std::vector<int> there;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) there.push_back(cpu);
    auto place = std::find(there.begin(), there.end(), from);
    if (place == there.end()) return;
    CPU_ZERO(&chosen);
    CPU_SET(there[(place - there.begin() + steps) % there.size()], &chosen);
    sched_setaffinity(0, sizeof(chosen), &chosen);
#else
    (void)from, (void)steps;
#endif
}

inline int this_processor() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

class Team {
  public:
    explicit Team(int size) : size(size) {
        int here = this_processor();
        for (int t = 1; t < size; t++)
            helpers.emplace_back([this, t, here] {
                move_away(here, t);
                help(t);
            });
    }

    ~Team() {
        over = true;
        wake();
        for (auto &helper : helpers) helper.join();
    }

    // work(0) here and work(1) … work(size − 1) in the helpers; returns when all are done
    template <class Work> void run(const Work &work) {
        if (size == 1) return work(0);
        job = &work;
        call = [](const void *job, int t) { (*static_cast<const Work *>(job))(t); };
        pending = size - 1;
        wake();
        work(0);
        for (int looks = 0; pending; looks++) looks < SPINS ? breathe() : std::this_thread::yield();
    }

    const int size;

  private:
    void wake() {
        turn++;
        if (!asleep) return;
        std::lock_guard<std::mutex> hold(mutex);
        alarm.notify_all();
    }

    void help(int t) {
        FlushDenormals flush;
        for (uint64_t seen = 0;; seen++) {
            for (int looks = 0; turn == seen && looks < SPINS; looks++) breathe();
            if (turn == seen) {
                std::unique_lock<std::mutex> hold(mutex);
                asleep++;
                alarm.wait(hold, [&] { return turn != seen; });
                asleep--;
            }
            if (over) return;
            call(job, t);
            pending--;
        }
    }

    const void *job = nullptr;
    void (*call)(const void *, int) = nullptr;
    std::atomic<uint64_t> turn{0};
    std::atomic<int> pending{0}, asleep{0};
    std::atomic<bool> over{false};
    std::mutex mutex;
    std::condition_variable alarm;
    std::vector<std::thread> helpers;
};

// the team of the calling thread; to be alone for a while does not send the others away
inline Team &team(int size = 0) {
    thread_local Team alone(1);
    thread_local std::unique_ptr<Team> several;
    thread_local Team *now = &alone;
    if (size == 1) now = &alone;
    if (size > 1) {
        if (!several || several->size != size) several = std::make_unique<Team>(size);
        now = several.get();
    }
    return *now;
}

// for (i = 0; i < n; i++) work(i), in equal shares
template <class Work> void share_out(int n, const Work &work) {
    Team &all = team();
    if (n == 1 || all.size == 1) {
        for (int i = 0; i < n; i++) work(i);
        return;
    }
    all.run([&](int t) {
        for (int i = static_cast<int64_t>(n) * t / all.size; i < static_cast<int64_t>(n) * (t + 1) / all.size; i++) work(i);
    });
}

}  // namespace dragoman
