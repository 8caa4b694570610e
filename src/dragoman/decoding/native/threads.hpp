// A few threads that work on one call together. Between two parts of a step they wait without sleeping, since the next
// part comes within microseconds; only when nothing has come for a while do they sleep.
#pragma once

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

class Team {
  public:
    explicit Team(int size) : size(size) {
        for (int t = 1; t < size; t++) helpers.emplace_back([this, t] { help(t); });
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

// the team of the calling thread, made when its size is first asked for
inline Team &team(int size = 0) {
    thread_local std::unique_ptr<Team> mine;
    if (!mine || (size && mine->size != size)) mine = std::make_unique<Team>(std::max(size, 1));
    return *mine;
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
