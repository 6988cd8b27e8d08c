// SPDX-License-Identifier: Apache-2.0
// Worker threads of teams: who takes part in a call, how threads wait for each other, and which of
// them have lost their cores of late.
#include "rung/cpu/team.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
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

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rung::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using Duration = std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;
using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Tuning {
  // A worker joins, and balanced shares end, within a microsecond or two of each other. Then
  // sched_yield() between looks costs a fraction of that, and lends the core to whoever needs it.
  Duration spin = microseconds(5);
  // Waiting longer than this, a thread sleeps. Waking it takes 5 to 50 us.
  Duration wait_awake = microseconds(100);
  // The same of a worker between calls. Those that follow each other sooner find it awake.
  Duration idle_awake = microseconds(200);
  // A call that is worth waking a worker for: twice the time that takes, for either thread.
  Duration worth_waking = microseconds(100);
  // The kernel ran something else during a sched_yield() this long: the core has other users.
  Duration long_yield = microseconds(20);
  // How long a body that waits is held up for workers that were awake, and that had to be woken.
  Duration join_awake = microseconds(10);
  Duration join_asleep = microseconds(50);
  // A thread's processor time is read at most this often, as that takes 0.3 us.
  Duration between_samples = microseconds(200);
  // A worker may lose so much more than it gains: the kernel takes some milliseconds to find cores
  // for threads that it has woken. It may save up gains for a little more.
  Duration first_credit = milliseconds(1), most_credit = milliseconds(4);
  // Then it is left out for this many times what it has lost, more where that happens again.
  int first_penalty = 4, last_penalty = 128;
  Duration memory = milliseconds(50);
  // The same for time in which a worker has been woken, or waited for, in vain.
  int first_vain_penalty = 8, last_vain_penalty = 64;
  Duration longest_exclusion = milliseconds(500);
  Duration between_looks_at_affinity = milliseconds(100);
};
constexpr Tuning tuning;

// --- waiting ----------------------------------------------------------------------------------

void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  static_assert(sizeof(word) == 4);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake(const std::atomic<std::uint32_t>& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

void pause_core() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

/// Time that this thread has waited so far, awake and asleep.
thread_local constinit Duration spun{0}, slept{0};

/// Spins until done(), then yields; false when `limit` has passed, or another thread has used the
/// core meanwhile.
template <class Done>
bool spin_until(const Done& done, Duration limit) {
  constexpr int looks_per_time = 16;
  for (int look = 0; look < looks_per_time; ++look) {
    if (done()) return true;
    pause_core();
  }
  const Time begin = Clock::now();
  Time now = begin;
  bool is_done = done();
  while (!is_done && now - begin < limit) {
    if (now - begin < tuning.spin) {
      for (int look = 0; look < looks_per_time && !is_done; ++look) {
        pause_core();
        is_done = done();
      }
      now = Clock::now();
      continue;
    }
    std::this_thread::yield();
    const Time after = Clock::now();
    is_done = done();
    if (after - now > tuning.long_yield) {
      slept += after - now;
      break;
    }
    now = after;
  }
  spun += now - begin;
  return is_done;
}

}  // namespace

namespace detail {

/// A word that threads wait on: they spin, then yield, then sleep.
class Signal {
 public:
  [[nodiscard]] std::uint32_t value() const { return word_.load(std::memory_order_acquire); }
  void wait_while(std::uint32_t old) {
    if (spin_until([&] { return value() != old; }, tuning.wait_awake)) return;
    const Time begin = Clock::now();
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (value() == old) sleep_while(word_, old);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    slept += Clock::now() - begin;
  }
  void set(std::uint32_t value) {
    word_.exchange(value, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) wake(word_, INT_MAX);
  }

 private:
  std::atomic<std::uint32_t> word_{0};
  std::atomic<int> sleepers_{0};
};

/// Central barrier; the phase counts how often all have met.
class Barrier {
 public:
  struct Abandoned {};

  void wait() {
    const std::uint32_t phase = phase_.value();
    check();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.set(phase + 1);
    } else {
      phase_.wait_while(phase);
    }
    check();
  }
  /// A thread will never arrive: all that wait, or come to wait, throw Abandoned.
  void abandon() {
    abandoned_.store(true, std::memory_order_relaxed);
    phase_.set(phase_.value() + 1);
  }
  void expect(int threads) { threads_ = threads; }

 private:
  void check() const {
    if (abandoned_.load(std::memory_order_relaxed)) throw Abandoned{};
  }

  int threads_ = 1;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) Signal phase_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace detail

namespace {

// --- lost time --------------------------------------------------------------------------------

Duration thread_cpu_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

/// Measures for how long a thread works on a call, and for how long it is kept from running.
class WorkMeter {
 public:
  /// Its processor time is read in short calls now and then only. A long one is always measured,
  /// from that time on, as if the thread had run since.
  void begin(Time now, bool measures) {
    begin_ = now;
    spun_ = spun;
    slept_ = slept;
    measures_ = measures || is_due(now);
    if (measures_) sample(now);
  }
  [[nodiscard]] bool is_due(Time now) const { return now - sampled_ >= tuning.between_samples; }
  /// False in a short call that has not been measured: nothing is known to have been lost.
  bool end() {
    const Time now = Clock::now();
    elapsed_ = now - begin_;
    Duration ran = elapsed_ - (slept - slept_);
    lost_ = Duration{0};
    const bool measured = measures_ || elapsed_ >= tuning.between_samples;
    if (measured) {
      const Duration before = cpu_time_ + (begin_ - sampled_) * (measures_ ? 0 : 1);
      sample(now);
      const Duration all = ran;
      ran = std::clamp(cpu_time_ - before, Duration{0}, std::max(all, Duration{0}));
      lost_ = all - ran;
    }
    worked_ = std::max(ran - (spun - spun_), Duration{0});
    return measured;
  }
  [[nodiscard]] Duration elapsed() const { return elapsed_; }
  [[nodiscard]] Duration worked() const { return worked_; }
  [[nodiscard]] Duration lost() const { return lost_; }

 private:
  void sample(Time now) {
    sampled_ = now;
    cpu_time_ = thread_cpu_time();
  }

  bool measures_ = false;
  Time begin_, sampled_;
  Duration cpu_time_{0}, spun_{0}, slept_{0};
  Duration elapsed_{0}, worked_{0}, lost_{0};
};

/// Whether a worker is of use: what calls gain by it is added up. Where that is negative, because
/// the worker loses its core, it is left out of calls, for longer and longer.
class Worth {
 public:
  [[nodiscard]] bool is_left_out(Time now) const { return now < until_; }
  void add(Duration gain, Time now) {
    balance_ = std::min(balance_ + gain, tuning.most_credit);
    if (balance_ >= Duration{0}) return;
    const bool again = now < until_ + std::max(2 * length_, tuning.memory);
    penalty_ = again ? std::min(2 * penalty_, tuning.last_penalty) : tuning.first_penalty;
    length_ = std::min(penalty_ * (tuning.first_credit - balance_), tuning.longest_exclusion);
    until_ = now + length_;
    balance_ = tuning.first_credit;
  }

 private:
  Duration balance_ = tuning.first_credit, length_{0};
  Time until_;
  int penalty_ = 0;
};

// --- a call -----------------------------------------------------------------------------------

/// Which ranks of a call have been taken.
class RankClaims {
 public:
  [[nodiscard]] int capacity() const { return static_cast<int>(taken_.size()) * 64; }
  void grow(int ranks) { taken_ = std::vector<std::atomic<std::uint64_t>>(words(ranks)); }
  void reset(int ranks) {
    for (std::size_t i = 0; i < words(ranks); ++i) taken_[i].store(0, std::memory_order_relaxed);
  }
  bool take(int rank) {
    std::atomic<std::uint64_t>& word = taken_[static_cast<std::size_t>(rank) / 64];
    const std::uint64_t bit = std::uint64_t{1} << rank % 64;
    if ((word.load(std::memory_order_relaxed) & bit) != 0) return false;
    return (word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

 private:
  static std::size_t words(int ranks) { return (static_cast<std::size_t>(ranks) + 63) / 64; }

  std::vector<std::atomic<std::uint64_t>> taken_;
};

/// One call of run_ranks() by several threads.
class TeamCall {
 public:
  TeamCall(Ranks ranks, int threads, void (*body)(const Team&, void*), void* data,
           RankClaims& claims, bool measured)
      : independent_(ranks == Ranks::independent),
        measured_(measured),
        threads_(threads),
        body_(body),
        data_(data),
        claims_(claims) {
    if (independent_) claims_.reset(threads);
  }

  [[nodiscard]] bool independent() const { return independent_; }
  /// Whether all threads measure their work, short as it may be.
  [[nodiscard]] bool is_measured() const { return measured_; }

  /// Runs `first` and then whatever ranks have not been taken; returns how many.
  int run_ranks_from(int first) {
    int ran = 0;
    for (int i = 0; i < threads_ && !failed_.load(std::memory_order_relaxed); ++i) {
      const int rank = first + i < threads_ ? first + i : first + i - threads_;
      if (!claims_.take(rank)) continue;
      guarded(rank, threads_, nullptr);
      ++ran;
    }
    return ran;
  }

  /// Tells the threads that have joined how many they are.
  void start(int size) {
    barrier_.expect(size);
    size_.set(static_cast<std::uint32_t>(size));
  }
  /// On a worker that has joined. Its rank is known once the call has started.
  void run_rank(const int& rank) {
    size_.wait_while(0);
    guarded(rank, static_cast<int>(size_.value()), &barrier_);
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void guarded(int rank, int size, detail::Barrier* barrier) {
    try {
      body_(Team(rank, size, barrier), data_);
    } catch (const detail::Barrier::Abandoned&) {
      return;  // released by the thread whose exception is carried
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
      if (barrier != nullptr) barrier->abandon();
    }
  }

  bool independent_, measured_;
  int threads_;
  void (*body_)(const Team&, void*);
  void* data_;
  RankClaims& claims_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  alignas(64) detail::Signal size_;
  detail::Barrier barrier_;
};

// --- workers ----------------------------------------------------------------------------------

/// Set in a thread that runs a body: calls from within run on it alone.
thread_local bool in_body = false;

std::atomic<int> running_workers{0};

/// A thread that takes part in the calls of one other, which alone uses this class.
class alignas(64) Worker {
 public:
  explicit Worker(int index) : index_(index), thread_([this] { serve(); }) {
    running_workers.fetch_add(1, std::memory_order_relaxed);
  }
  ~Worker() {
    if (state_.exchange(stopping, std::memory_order_acq_rel) == asleep) wake(state_, 1);
    thread_.join();
    running_workers.fetch_sub(1, std::memory_order_relaxed);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// From a call that begins now, wakes workers that sleep, and waits for those that are late, or
  /// does not.
  [[nodiscard]] bool is_left_out(Time now, bool wakes, bool waits) const {
    return worth_.is_left_out(now) || (waits && now < wait_from_) ||
           ((!wakes || now < wake_from_) && state_.load(std::memory_order_relaxed) == asleep);
  }
  void add_gain(Duration gain, Time now) { worth_.add(gain, now); }

  void invite(TeamCall& call) {
    call_ = &call;
    const bool sleeps = state_.exchange(invited, std::memory_order_acq_rel) == asleep;
    was_awake_ = !sleeps && !waking_;
    woken_ = sleeps;
    if (!sleeps) return;
    waking_ = true;
    const Time begin = Clock::now();
    wake(state_, 1);
    wake_time_ = Clock::now() - begin;
  }
  /// How long it should take to join.
  [[nodiscard]] Duration join_time() const {
    return was_awake_ ? tuning.join_awake : tuning.join_asleep;
  }
  [[nodiscard]] bool has_joined() const {
    return state_.load(std::memory_order_acquire) != invited;
  }
  /// Ends the invitation; false if the worker has joined.
  bool withdraw() {
    std::uint32_t expected = invited;
    return state_.compare_exchange_strong(expected, idle, std::memory_order_acquire);
  }
  /// Of a worker that has joined a call which has not started.
  void set_rank(int rank) { rank_ = rank; }
  /// Waits until a worker that has joined is done.
  void finish() {
    waking_ = false;
    const auto done = [&] { return state_.load(std::memory_order_acquire) == idle; };
    if (!spin_until(done, tuning.wait_awake)) {
      const Time begin = Clock::now();
      std::uint32_t expected = joined;
      if (state_.compare_exchange_strong(expected, awaited, std::memory_order_acquire)) {
        while (state_.load(std::memory_order_acquire) == awaited) sleep_while(state_, awaited);
      }
      slept += Clock::now() - begin;
    }
  }
  /// In the call that has ended.
  [[nodiscard]] Duration worked() const { return meter_.worked(); }
  [[nodiscard]] Duration lost() const { return meter_.lost(); }
  /// After a call in which the worker has taken part.
  void note_use() {
    if (ranks_run_ > 0) {
      vain_penalty_ = tuning.first_vain_penalty;
    } else {
      note_no_use(Duration{0});
    }
  }
  /// After a call of which it was of no use that the caller waited so long, or woke the worker: for
  /// a while it does neither.
  void note_no_use(Duration waited) {
    const Duration cost = waited + (woken_ ? wake_time_ : Duration{0});
    if (cost == Duration{0}) return;
    const Time from = Clock::now() + vain_penalty_ * cost;
    if (woken_) wake_from_ = from;
    if (waited > Duration{0}) wait_from_ = from;
    vain_penalty_ = std::min(2 * vain_penalty_, tuning.last_vain_penalty);
  }

 private:
  enum State : std::uint32_t {
    idle,      // spins
    asleep,    // waits to be woken
    invited,   // a call is on
    joined,    // takes part in it
    awaited,   // takes part, and the caller sleeps
    stopping,  // is to end
  };

  void serve() {
    in_body = true;
    while (wait_for_call()) {
      if (const auto hook = team_hooks::before_joining.load(std::memory_order_relaxed))
        hook(index_);
      std::uint32_t expected = invited;
      if (!state_.compare_exchange_strong(expected, joined, std::memory_order_acq_rel)) continue;
      meter_.begin(Clock::now(), call_->is_measured());
      if (call_->independent()) {
        ranks_run_ = call_->run_ranks_from(index_ + 1);
      } else {
        call_->run_rank(rank_);
        ranks_run_ = 1;
      }
      meter_.end();
      if (state_.exchange(idle, std::memory_order_acq_rel) == awaited) wake(state_, 1);
    }
  }

  /// False when the worker is to end.
  bool wait_for_call() {
    std::uint32_t state = idle;
    const auto called = [&] {
      state = state_.load(std::memory_order_acquire);
      return state == invited || state == stopping;
    };
    while (!spin_until(called, tuning.idle_awake)) {
      std::uint32_t expected = idle;
      if (!state_.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel)) continue;
      while (state_.load(std::memory_order_acquire) == asleep) sleep_while(state_, asleep);
    }
    return state == invited;
  }

  std::atomic<std::uint32_t> state_{idle};
  int index_;
  // Written before the worker may read them, and read after it has written them.
  TeamCall* call_ = nullptr;
  int rank_ = 0, ranks_run_ = 0;
  alignas(64) WorkMeter meter_;
  // The caller's own.
  alignas(64) Worth worth_;
  bool waking_ = true;      // started or woken, and has not joined a call since
  bool was_awake_ = false;  // when the call began; else it was asleep, or waking
  bool woken_ = false;      // by this call
  Duration wake_time_{0};
  Time wake_from_, wait_from_;
  int vain_penalty_ = tuning.first_vain_penalty;
  std::thread thread_;  // starts last
};

/// How often this process is the child of a fork(): threads of an earlier generation do not exist.
std::atomic<int> generation{0};
[[maybe_unused]] const int at_fork = pthread_atfork(nullptr, nullptr, [] {
  generation.fetch_add(1, std::memory_order_relaxed);
  running_workers.store(0, std::memory_order_relaxed);
});

/// Marks the calling thread as one that runs a body.
class InBody {
 public:
  InBody() { in_body = true; }
  ~InBody() { in_body = false; }
  InBody(const InBody&) = delete;
  InBody& operator=(const InBody&) = delete;
};

using Body = void(const Team&, void*);

/// All ranks on the calling thread.
void run_alone(Ranks ranks, int threads, Body* body, void* data) {
  if (ranks != Ranks::independent) return body(Team(0, 1, nullptr), data);
  for (int rank = 0; rank < threads; ++rank) body(Team(rank, threads, nullptr), data);
}

/// For tests: bodies with each number of threads, whatever the machine has.
bool all_teams_are_exact() {
  static const bool exact = [] {
    const char* text = std::getenv("RUNG_CPU_TEAM");
    return text != nullptr && std::strcmp(text, "exact") == 0;
  }();
  return exact;
}

/// The workers of one thread.
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
    for (Worker* worker : chosen_) worker->invite(call);
    if (call.independent()) {
      call.run_ranks_from(0);
      std::erase_if(chosen_, [](Worker* worker) {
        const bool absent = worker->withdraw();
        if (absent) worker->note_no_use(Duration{0});
        return absent;
      });
    } else {
      gather(ranks == Ranks::exact);
      call.start(1 + static_cast<int>(chosen_.size()));
      call.run_rank(0);
    }
    for (Worker* worker : chosen_) worker->finish();
    for (Worker* worker : chosen_) worker->note_use();
    weigh(meter_.end(), measured);
    note_call(begin, begin + meter_.elapsed(), 1 + static_cast<int>(chosen_.size()));
    call.rethrow();
  }

  /// Returns what has been assumed before; 0 is what the system says.
  int assume_cores(int cores) { return std::exchange(assumed_cores_, cores); }
  void note_loss(int worker, Duration lost) { workers_.at(worker)->add_gain(-lost, Clock::now()); }

 private:
  [[nodiscard]] int workers() const { return static_cast<int>(workers_.size()); }

  /// How many threads it is of use to have running.
  int cores(Time now) {
    if (assumed_cores_ > 0) return assumed_cores_;
    if (cores_ == 0 || now - looked_ > tuning.between_looks_at_affinity) {
      cores_ = rung::detail::usable_cores();
      looked_ = now;
    }
    return cores_;
  }

  void grow(int count, int threads) {
    try {
      if (threads > claims_.capacity()) claims_.grow(threads);
      workers_.reserve(static_cast<std::size_t>(count));
      chosen_.reserve(static_cast<std::size_t>(count));
      while (workers() < count) workers_.push_back(std::make_unique<Worker>(workers()));
    } catch (const std::exception& error) {  // std::system_error, or std::bad_alloc
      throw Error(ErrorCode::out_of_memory, "thread " + std::to_string(workers() + 2) + " of " +
                                                std::to_string(threads) + " cannot be started (" +
                                                error.what() +
                                                "); accepted: a context of fewer threads");
    }
  }

  /// Of the first `most` workers those that are to take part in a call.
  void choose(Ranks ranks, int most, Time now) {
    chosen_.clear();
    // Waking a worker pays for a long call, or for the calls that follow a short one.
    const bool wakes = now - ended_ < tuning.idle_awake || typical_ >= tuning.worth_waking;
    for (int i = 0; i < most; ++i) {
      Worker* worker = workers_[i].get();
      if (ranks == Ranks::exact || !worker->is_left_out(now, wakes, ranks == Ranks::concurrent)) {
        chosen_.push_back(worker);
      }
    }
  }

  /// Gives ranks to the workers that join a call in time, or to all, and dismisses the others.
  void gather(bool all) {
    const Time begin = Clock::now();
    int rank = 0;
    std::erase_if(chosen_, [&](Worker* worker) {
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

  /// Credits and debits the workers with what a call has gained: one thread would have done all of
  /// the work.
  void weigh(bool measured, bool for_others) {
    if (!measured) {
      unmeasured_ += meter_.elapsed();
      return;
    }
    if (chosen_.empty()) return;
    Duration worked = meter_.worked(), lost{0};
    for (const Worker* worker : chosen_) {
      worked += worker->worked();
      lost += worker->lost();
    }
    Seconds gain = worked - meter_.elapsed();
    if (for_others) {  // it stands for the calls before it that have not been measured
      gain *= 1 + Seconds(unmeasured_) / Seconds(meter_.elapsed());
      unmeasured_ = Duration{0};
    }
    // Threads that share caches and memory work longer than one.
    if (gain > Seconds{0}) gain /= 2;
    const auto equal_part = 1.0 / static_cast<double>(chosen_.size());
    for (Worker* worker : chosen_) {
      const bool blamed = gain < Seconds{0} && lost > Duration{0};
      const double part = blamed ? Seconds(worker->lost()) / Seconds(lost) : equal_part;
      worker->add_gain(std::chrono::duration_cast<Duration>(gain * part), Clock::now());
    }
  }

  void note_call(Time begin, Time end, int threads) {
    ended_ = end;
    typical_ += ((end - begin) * threads - typical_) / 4;
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> chosen_;  // that take part in the current call
  RankClaims claims_;
  WorkMeter meter_;
  Duration unmeasured_{0};  // calls since the last one that stood for others
  int cores_ = 0, assumed_cores_ = all_teams_are_exact() ? team_hooks::enough_cores : 0;
  Time looked_;
  Time ended_;                              // the last call
  Duration typical_ = tuning.worth_waking;  // time of all threads in a call, of late
};

/// The pool of a thread, which ends with it.
struct OwnPool {
  Pool* pool;
  int of_generation;
  bool ended;
};
thread_local constinit OwnPool own{nullptr, 0, false};

void end_own_pool() {
  own.ended = true;
  Pool* const pool = std::exchange(own.pool, nullptr);
  // Not the threads of the process that forked this one, nor those amid a call, from which exit()
  // has been called.
  if (own.of_generation == generation.load(std::memory_order_relaxed) && !in_body) delete pool;
}

/// Not a thread_local with a destructor: where there is no memory to note that down, the C library
/// ends the process.
class ThreadEnd {
 public:
  ThreadEnd() : made_(pthread_key_create(&key_, [](void*) { end_own_pool(); }) == 0) {}
  ~ThreadEnd() { end_own_pool(); }  // of the thread that ends the process
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;

  /// The calling thread ends its pool with itself.
  void watch() const {
    if (!made_ || pthread_setspecific(key_, &own) != 0) throw std::bad_alloc();
  }

 private:
  pthread_key_t key_{};
  bool made_;
};
ThreadEnd thread_end;

/// The calling thread's pool; none where the thread is ending.
Pool* my_pool() {
  const int now = generation.load(std::memory_order_relaxed);
  if (own.ended || (own.pool != nullptr && own.of_generation == now)) return own.pool;
  thread_end.watch();
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

void run_ranks(Ranks ranks, int threads, void (*body)(const Team&, void*), void* data) {
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
