// SPDX-License-Identifier: Apache-2.0
// Worker threads of teams, and the selection of those that take part in a call. Each calling thread
// has a pool of its own.
#include "rung/cpu/team.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rung/core/cpu_device.hpp"
#include "rung/core/error.hpp"
#include "rung/cpu/team_hooks.hpp"
#include "rung/cpu/team_worker.hpp"

namespace rung::cpu {
namespace {
using namespace detail;

/// Number of forks between the first process and this one: threads of an earlier generation do not
/// exist in this process.
std::atomic<int> generation{0};
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  generation.fetch_add(1, std::memory_order_relaxed);
  running_workers.store(0, std::memory_order_relaxed);
});

/// Marks the calling thread as executing a body.
class InBody {
 public:
  InBody() { in_body = true; }
  ~InBody() { in_body = false; }
  InBody(const InBody&) = delete;
  InBody& operator=(const InBody&) = delete;
};

/// Runs all ranks on the calling thread.
void run_alone(Ranks ranks, int threads, Body* body, void* data) {
  if (ranks != Ranks::independent) return body(Team(0, 1, nullptr), data);
  for (int rank = 0; rank < threads; ++rank) body(Team(rank, threads, nullptr), data);
}

/// Returns true if tests request exact teams: every call then gets the requested number of threads,
/// however many cores the machine has.
bool all_teams_are_exact() {
  static const bool exact = [] {
    const char* text = std::getenv("RUNG_CPU_TEAM");
    return text != nullptr && std::strcmp(text, "exact") == 0;
  }();
  return exact;
}

/// Workers of one calling thread.
class Pool {
 public:
  void run(Ranks ranks, int threads, Body* body, void* data) {
    const InBody mark;
    const Time begin = Clock::now();
    const int available = cores(begin);
    if (ranks == Ranks::concurrent && available == team_hooks::enough_cores) ranks = Ranks::exact;
    const int most = (ranks == Ranks::exact ? threads : std::min(threads, available)) - 1;
    if (most > workers() || threads > claims_.capacity()) grow(most, threads);
    choose(ranks, most, begin);
    if (chosen_.empty()) {
      run_alone(ranks, threads, body, data);
      note_call(begin, Clock::now(), 1);
      return;
    }
    const bool measured = meter_.is_due(begin);
    TeamCall call(ranks, threads, body, data, claims_, measured);
    meter_.begin(begin, measured);
    for (TeamWorker* worker : chosen_) worker->invite(call);
    if (call.independent()) {
      call.run_ranks_from(0);
      std::erase_if(chosen_, [](TeamWorker* worker) {
        const bool absent = worker->withdraw();
        if (absent) worker->note_no_use(Duration{0});
        return absent;
      });
    } else {
      gather(ranks == Ranks::exact);
      call.start(1 + static_cast<int>(chosen_.size()));
      call.run_rank(0);
    }
    for (TeamWorker* worker : chosen_) worker->finish();
    for (TeamWorker* worker : chosen_) worker->note_use();
    weigh(meter_.end(), measured);
    note_call(begin, begin + meter_.elapsed(), 1 + static_cast<int>(chosen_.size()));
    call.rethrow();
  }

  /// Sets the assumed number of cores and returns the previous one; 0: as the system reports.
  int assume_cores(int cores) { return std::exchange(assumed_cores_, cores); }
  void note_loss(int worker, Duration lost) { workers_.at(worker)->add_gain(-lost, Clock::now()); }

 private:
  [[nodiscard]] int workers() const { return static_cast<int>(workers_.size()); }

  /// Returns the number of threads that can run at once.
  int cores(Time now) {
    if (assumed_cores_ > 0) return assumed_cores_;
    if (cores_ == 0 || now - polled_ > tuning.affinity_poll_interval) {
      cores_ = rung::detail::usable_cores();
      polled_ = now;
    }
    return cores_;
  }

  void grow(int count, int threads) {
    try {
      if (threads > claims_.capacity()) claims_.grow(threads);
      workers_.reserve(static_cast<std::size_t>(count));
      chosen_.reserve(static_cast<std::size_t>(count));
      while (workers() < count) workers_.push_back(std::make_unique<TeamWorker>(workers()));
    } catch (const std::exception& error) {  // std::system_error, or std::bad_alloc
      throw Error(ErrorCode::out_of_memory, "thread " + std::to_string(workers() + 2) + " of " +
                                                std::to_string(threads) + " cannot be started (" +
                                                error.what() +
                                                "); accepted: a context of fewer threads");
    }
  }

  /// Selects participants of a call among the first `most` workers.
  void choose(Ranks ranks, int most, Time now) {
    chosen_.clear();
    // Waking a worker pays off for a long call, or for calls that soon follow a short one.
    const bool wakes = now - ended_ < tuning.idle_awake || typical_ >= tuning.worth_waking;
    for (int i = 0; i < most; ++i) {
      TeamWorker* worker = workers_[i].get();
      if (ranks == Ranks::exact || !worker->is_left_out(now, wakes, ranks == Ranks::concurrent)) {
        chosen_.push_back(worker);
      }
    }
  }

  /// Assigns ranks to the workers that join in time (with `all`, to all workers) and withdraws the
  /// invitations of the others.
  void gather(bool all) {
    const Time begin = Clock::now();
    int rank = 0;
    std::erase_if(chosen_, [&](TeamWorker* worker) {
      const auto joined = [&] { return worker->has_joined(); };
      if (all) {
        while (!spin_until(joined, tuning.join_asleep)) std::this_thread::yield();
      } else if (!spin_until(joined, worker->join_time() - (Clock::now() - begin)) &&
                 worker->withdraw()) {
        worker->note_no_use(Clock::now() - begin);
        return true;
      }
      worker->set_rank(++rank);
      return false;
    });
  }

  /// Credits or debits the workers with the time that a call saved by using them: the total time
  /// worked, which a single thread would have taken, minus the elapsed time.
  void weigh(bool measured, bool for_others) {
    if (!measured) {
      unmeasured_ += meter_.elapsed();
      return;
    }
    if (chosen_.empty()) return;
    Duration worked = meter_.worked(), lost{0};
    for (const TeamWorker* worker : chosen_) {
      worked += worker->worked();
      lost += worker->lost();
    }
    Seconds gain = worked - meter_.elapsed();
    if (for_others) {  // represents the preceding calls, which were not measured
      gain *= 1 + Seconds(unmeasured_) / Seconds(meter_.elapsed());
      unmeasured_ = Duration{0};
    }
    // Threads that share caches and memory take more time in total than a single thread.
    if (gain > Seconds{0}) gain /= 2;
    const auto equal_part = 1.0 / static_cast<double>(chosen_.size());
    for (TeamWorker* worker : chosen_) {
      const bool blamed = gain < Seconds{0} && lost > Duration{0};
      const double part = blamed ? Seconds(worker->lost()) / Seconds(lost) : equal_part;
      worker->add_gain(std::chrono::duration_cast<Duration>(gain * part), Clock::now());
    }
  }

  void note_call(Time begin, Time end, int threads) {
    ended_ = end;
    typical_ += ((end - begin) * threads - typical_) / 4;
  }

  std::vector<std::unique_ptr<TeamWorker>> workers_;
  std::vector<TeamWorker*> chosen_;  // participants of the current call
  RankClaims claims_;
  WorkMeter meter_;
  Duration unmeasured_{0};  // total time of unmeasured calls since they were last accounted for
  int cores_ = 0, assumed_cores_ = all_teams_are_exact() ? team_hooks::enough_cores : 0;
  Time polled_;
  Time ended_;                              // end of the last call
  Duration typical_ = tuning.worth_waking;  // total thread time of recent calls, smoothed
};

/// Pool of a thread, destroyed with it.
struct OwnPool {
  Pool* pool;
  Pool*
      of_parent;  // of the process that forked this one: never deleted, as its threads do not exist
  int of_generation;
  bool ended;
};
thread_local constinit OwnPool own{nullptr, nullptr, 0, false};

void end_own_pool() {
  own.ended = true;
  Pool* const pool = std::exchange(own.pool, nullptr);
  // Deletes no pool whose threads belong to the parent process of a fork, and none of a thread that
  // has called exit() within a call.
  if (own.of_generation == generation.load(std::memory_order_relaxed) && !in_body) delete pool;
}

/// Destroys a thread's pool when the thread exits. Not a thread_local with a destructor: the C
/// library aborts the process if it cannot allocate memory to register one.
class ThreadEnd {
 public:
  ThreadEnd() : made_(pthread_key_create(&key_, [](void*) { end_own_pool(); }) == 0) {}
  ~ThreadEnd() { end_own_pool(); }  // for the thread that ends the process
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;

  /// Registers the calling thread, so that its pool is destroyed when it exits.
  void watch() const {
    if (!made_ || pthread_setspecific(key_, &own) != 0) throw std::bad_alloc();
  }

 private:
  pthread_key_t key_{};
  bool made_;
};
ThreadEnd thread_end;

/// Returns the calling thread's pool; null if the thread is exiting.
Pool* my_pool() {
  const int now = generation.load(std::memory_order_relaxed);
  if (own.ended || (own.pool != nullptr && own.of_generation == now)) return own.pool;
  thread_end.watch();
  own.of_parent = std::exchange(own.pool, nullptr);
  own.pool = new Pool;
  own.of_generation = now;
  return own.pool;
}

}  // namespace

namespace detail {

void wait(Barrier* barrier) {
  if (barrier == nullptr) {
    throw Error(ErrorCode::internal,
                "Team::wait() within run_shares(), whose ranks are independent");
  }
  barrier->wait();
}

void run_ranks(Ranks ranks, int threads, Body* body, void* data) {
  Pool* const pool = in_body ? nullptr : my_pool();
  if (pool == nullptr) return run_alone(ranks, threads, body, data);
  pool->run(ranks, threads, body, data);
}

}  // namespace detail

namespace team_hooks {

std::atomic<void (*)(int worker)> before_joining{nullptr};

int workers() { return running_workers.load(std::memory_order_relaxed); }

AssumedCores::AssumedCores(int cores) : before_(my_pool()->assume_cores(cores)) {}
AssumedCores::~AssumedCores() { my_pool()->assume_cores(before_); }

void note_loss(int worker, double seconds) {
  my_pool()->note_loss(
      worker, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace team_hooks
}  // namespace rung::cpu
