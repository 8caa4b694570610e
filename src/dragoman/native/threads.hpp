// A few threads that work on one call together. Between two parts of a step they wait without sleeping, since the next
// part comes within microseconds; only when nothing has come for a while do they sleep.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
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

// How many forks lie between this process and the one that first asked. Threads do not come along in a fork.
inline int forks() {
    static int since = 0;
#if defined(__unix__) || defined(__APPLE__)
    static int told = pthread_atfork(nullptr, nullptr, [] { since++; });
    (void)told;
#endif
    return since;
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
        {
            std::lock_guard<std::mutex> hold(mutex);
            over = true;
        }
        alarm.notify_all();
        for (auto &helper : helpers) helper.join();
    }

    // work(i, thread) for every i < n; returns when all are done. Each thread begins with a range of its own, so that what
    // one fetches ahead it also uses, and then helps the others with theirs: one who is late or asleep is not waited for,
    // unless it has taken something.
    template <class Work> void run(int n, const Work &work) {
        if (size == 1) {
            for (int i = 0; i < n; i++) work(i, 0);
            return;
        }
        job = &work, done = 0;
        call = [](const void *job, int i, int t) { (*static_cast<const Work *>(job))(i, t); };
        turns++;
        for (int t = 0, begin = 0; t < size; t++) {
            int end = static_cast<int>(static_cast<int64_t>(n) * (t + 1) / size);
            ends[t] = end;
            tickets[t].left = (turns << 32) | static_cast<uint32_t>(end - begin);
            begin = end;
        }
        if (asleep) {
            std::lock_guard<std::mutex> hold(mutex);
            alarm.notify_all();
        }
        take(0);
        for (int looks = 0; done != n; looks++) looks < SPINS ? breathe() : std::this_thread::yield();
    }

    // its helpers are in the process that this one was forked from
    bool left_behind() const { return forks() != born; }

    const int size;

  private:
    static constexpr uint64_t LEFT = 0xffffffff;

    // of a thread's range: which job it is of, and how much of it nobody has taken; each in a line of the cache of its own
    struct alignas(64) Tickets {
        std::atomic<uint64_t> left{0};
    };

    // A ticket that was taken holds its job in place: `job`, `call` and `ends` change only when all are done.
    void take(int t) {
        for (int i = 0; i < size; i++) {
            int whose = (t + i) % size;
            std::atomic<uint64_t> &left = tickets[whose].left;
            for (uint64_t now = left; now & LEFT;)
                if (left.compare_exchange_weak(now, now - 1)) {
                    call(job, ends[whose] - static_cast<int>(now & LEFT), t);
                    done++;
                    now = left;
                }
        }
    }

    bool is_work() const {
        return std::any_of(tickets.begin(), tickets.end(), [](const Tickets &of) { return of.left & LEFT; });
    }

    void help(int t) {
        FlushDenormals flush;
        for (int looks = 0; !over; looks++) {
            if (is_work()) {
                take(t);
                looks = 0;
            } else if (looks < SPINS) {
                breathe();
            } else {
                std::unique_lock<std::mutex> hold(mutex);
                asleep++;
                alarm.wait(hold, [&] { return over || is_work(); });
                asleep--;
                looks = 0;
            }
        }
    }

    const int born = forks();
    const void *job = nullptr;
    void (*call)(const void *, int, int) = nullptr;
    uint64_t turns = 0;
    std::vector<Tickets> tickets{static_cast<size_t>(size)};
    std::vector<int> ends{std::vector<int>(size)};
    std::atomic<int> done{0}, asleep{0};
    std::atomic<bool> over{false};
    std::mutex mutex;
    std::condition_variable alarm;
    std::vector<std::thread> helpers;
};

// A team that was left behind stays in memory for good: to lock or to destroy what its helpers held or slept on would be to
// wait for them, and they are not here.
struct Dismissal {
    void operator()(Team *team) const {
        if (!team->left_behind()) delete team;
    }
};
using OwnTeam = std::unique_ptr<Team, Dismissal>;

// the team of the calling thread; to be alone for a while does not send the others away
inline Team &team(int size = 0) {
    thread_local Team alone(1);
    thread_local OwnTeam several;
    thread_local Team *now = &alone;
    if (several && several->left_behind()) {
        if (size == 0 && now != &alone) size = several->size;
        several.reset();
        now = &alone;
    }
    if (size == 1) now = &alone;
    if (size > 1) {
        if (!several || several->size != size) several = OwnTeam(new Team(size));
        now = several.get();
    }
    return *now;
}

// for (i = 0; i < n; i++) work(i)
template <class Work> void share_out(int n, const Work &work) {
    if (n == 1) return work(0);
    team().run(n, [&](int i, int) { work(i); });
}

}  // namespace dragoman
