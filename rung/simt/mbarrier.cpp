// SPDX-License-Identifier: Apache-2.0
// Encoding of mbarrier state, and waits for mbarriers.
#include "rung/simt/mbarrier.hpp"

#include <utility>

#include "rung/simt/address.hpp"
#include "rung/simt/copy_engine.hpp"
#include "rung/simt/record/operations.hpp"
#include "rung/simt/record/recorder.hpp"
#include "rung/simt/scheduler.hpp"

namespace rung::simt {
namespace {

constexpr int count_bits = 20;
constexpr std::int64_t most = (1 << count_bits) - 1;  // maximum of arrivals, and of bytes in flight

/// State of an mbarrier in 64 bits: mark 2, parity 1, expected arrivals 20, pending arrivals 20,
/// bytes 21. Bytes are biased, since they may arrive before expect_tx announces them.
struct State {
  std::int64_t expected = 0;
  std::int64_t pending = 0;
  std::int64_t bytes = 0;
  std::uint32_t parity = 0;

  static constexpr std::uint64_t mark = 1;  // differs from poison and from zeros

  static bool valid(std::uint64_t word) { return word >> 62 == mark; }
  explicit State(std::uint64_t word)
      : expected(static_cast<std::int64_t>(word >> 41) & most),
        pending(static_cast<std::int64_t>(word >> 21) & most),
        bytes((static_cast<std::int64_t>(word) & (2 * most + 1)) - most),
        parity(static_cast<std::uint32_t>(word >> 61) & 1) {}
  [[nodiscard]] std::uint64_t word() const {
    return mark << 62 | std::uint64_t{parity} << 61 | static_cast<std::uint64_t>(expected) << 41 |
           static_cast<std::uint64_t>(pending) << 21 | static_cast<std::uint64_t>(bytes + most);
  }
  /// Starts the next phase if the current one is complete.
  bool complete() {
    if (pending != 0 || bytes != 0) return false;
    pending = expected;
    parity ^= 1;
    return true;
  }
};

State read(const char* operation, const std::uint64_t* barrier, Place place) {
  if (State::valid(*barrier)) return State(*barrier);
  running_worker(operation).fail(
      std::string(operation) + ": this mbarrier was not initialized, or has been overwritten",
      place);
}

void announce(const char* operation, State& state, std::uint32_t bytes, Place place) {
  state.bytes += bytes;
  if (state.bytes <= most) return;
  running_worker(operation).fail(std::string(operation) + ": " + std::to_string(state.bytes) +
                                     " bytes in flight, accepted are up to " + std::to_string(most),
                                 place);
}

/// Tells the recorder the bytes that the current phase still lacks.
void note_balance(Worker& here, Block& owner, const std::uint64_t* barrier, const State& state) {
  if (here.recorder() != nullptr) here.recorder()->balanced(owner, barrier, *barrier, state.bytes);
}

void write(Worker& here, Block& owner, std::uint64_t* barrier, State state) {
  const bool completed = state.complete();
  *barrier = state.word();
  note_balance(here, owner, barrier, state);
  if (completed && here.recorder() != nullptr)
    here.recorder()->completed(owner, barrier, state.parity ^ 1);
  if (completed) here.release_mbarrier(owner, barrier);
}

struct Arrival {
  std::uint32_t bytes = 0;  // announced bytes
  int count = 1;
  bool last = false;  // mbarrier.arrive_drop: later phases expect `count` arrivals fewer
};
void arrive(const char* operation, Block& owner, std::uint64_t* barrier, const Arrival& arrival,
            Place place) {
  Worker& here = running_worker(operation);
  record::note(barrier, sizeof(*barrier), record::Access::touch, place);
  State state = read(operation, barrier, place);
  if (state.pending < arrival.count) {
    here.fail(std::string(operation) + ": more than the " + std::to_string(state.expected) +
                  " arrivals that this mbarrier was initialized for",
              place);
  }
  announce(operation, state, arrival.bytes, place);
  if (here.recorder() != nullptr) {
    here.recorder()->arrived(owner, barrier, place);
    if (arrival.bytes != 0) here.recorder()->announced(owner, barrier, place);
  }
  state.pending -= arrival.count;
  if (arrival.last) state.expected -= arrival.count;
  write(here, owner, barrier, state);
}

/// Reports the running thread's wait for a phase to the recorder.
void learn(const std::uint64_t* barrier, std::uint32_t parity, bool of_state, Place place) {
  Worker& here = running_worker("mbarrier");
  if (here.recorder() == nullptr) return;
  here.recorder()->waited(*here.current().block, barrier, parity & 1, of_state, place);
}

void require_own(const char* operation, const std::uint64_t* barrier, Place place) {
  require_shared(operation, barrier, sizeof(*barrier), place);
  require_aligned(barrier, sizeof(*barrier), operation, place);
}

}  // namespace

void mbarrier_init(std::uint64_t* barrier, int arrivals, Place place) {
  require_own("mbarrier_init", barrier, place);
  if (arrivals < 1 || arrivals > most) {
    running_worker("mbarrier_init")
        .fail("mbarrier_init for " + std::to_string(arrivals) + " arrivals, accepted are 1 to " +
                  std::to_string(most),
              place);
  }
  State state(0);
  state.expected = state.pending = arrivals;
  state.bytes = 0;
  record::note(barrier, sizeof(*barrier), record::Access::write, place);
  *barrier = state.word();
  Worker& here = running_worker("mbarrier_init");
  if (here.recorder() != nullptr) {
    here.recorder()->initialized(*here.current().block, barrier, place);
  }
}

void fence_mbarrier_init() {
  Worker& here = running_worker("fence.mbarrier_init");
  if (here.recorder() != nullptr) here.recorder()->init_fence();
}

void mbarrier_invalidate(std::uint64_t* barrier, Place place) {
  require_own("mbarrier_invalidate", barrier, place);
  read("mbarrier_invalidate", barrier, place);
  record::note(barrier, sizeof(*barrier), record::Access::write, place);
  *barrier = 0;
}

void mbarrier_arrive(std::uint64_t* barrier, std::uint32_t bytes, Place place, int count) {
  require_own("mbarrier_arrive", barrier, place);
  arrive("mbarrier_arrive", *running_worker("mbarrier_arrive").current().block, barrier,
         {bytes, count}, place);
}

void mbarrier_drop(std::uint64_t* barrier, std::uint32_t bytes, Place place, int count) {
  require_own("mbarrier_drop", barrier, place);
  arrive("mbarrier_drop", *running_worker("mbarrier_drop").current().block, barrier,
         {bytes, count, true}, place);
}

void mbarrier_expect(std::uint64_t* barrier, std::uint32_t bytes, Place place) {
  require_own("mbarrier_expect", barrier, place);
  record::note(barrier, sizeof(*barrier), record::Access::touch, place);
  State state = read("mbarrier_expect", barrier, place);
  announce("mbarrier_expect", state, bytes, place);
  *barrier = state.word();  // an announcement alone never completes a phase
  Worker& here = running_worker("mbarrier_expect");
  Block& owner = *here.current().block;
  if (here.recorder() != nullptr) here.recorder()->announced(owner, barrier, place);
  note_balance(here, owner, barrier, state);
}

void mbarrier_arrive_remote(std::uint64_t* barrier, int rank, Place place, std::uint32_t bytes,
                            int count) {
  require_own("mbarrier_arrive_remote", barrier, place);
  Block& owner = block_of_rank("mbarrier_arrive_remote", rank, place);
  arrive("mbarrier_arrive_remote", owner, static_cast<std::uint64_t*>(in(owner, barrier)),
         {bytes, count}, place);
}

std::uint64_t mbarrier_state(std::uint64_t* barrier, Place place) {
  require_own("mbarrier_state", barrier, place);
  return read("mbarrier_state", barrier, place).word();
}

std::uint32_t mbarrier_parity(std::uint64_t state) { return State(state).parity; }
std::uint32_t mbarrier_pending(std::uint64_t state) {
  return static_cast<std::uint32_t>(State(state).pending);
}

bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity, Place place, bool of_state) {
  require_own("mbarrier_try_wait", barrier, place);
  record::note(barrier, sizeof(*barrier), record::Access::touch, place);
  for (int look = 0; look < 2; ++look) {
    if (read("mbarrier_try_wait", barrier, place).parity != (parity & 1)) {
      learn(barrier, parity, of_state, place);
      return true;
    }
    if (look != 0) break;
    Worker& here = running_worker("mbarrier_try_wait");
    here.current().operation = "mbarrier_try_wait";
    here.current().mbarrier = barrier;
    here.current().parity = parity & 1;
    here.current().place = place;
    here.yield(YieldReason::in_vain);
  }
  return false;
}

void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, Place place, bool of_state) {
  require_own("mbarrier_wait", barrier, place);
  record::note(barrier, sizeof(*barrier), record::Access::touch, place);
  if (read("mbarrier_wait", barrier, place).parity != (parity & 1)) {
    learn(barrier, parity, of_state, place);
    return;
  }
  Worker& here = running_worker("mbarrier_wait");
  Thread& self = here.current();
  self.mbarrier = barrier;
  self.parity = parity & 1;
  self.block->mbarrier_waiters.push_back(&self);
  here.wait(Wait::mbarrier, "mbarrier_wait", place);
  learn(barrier, parity, of_state, place);
}

void Worker::release_mbarrier(Block& owner, const std::uint64_t* barrier) {
  gather();
  const std::uint32_t parity = State(*barrier).parity;
  std::vector<Thread*>& waiters = owner.mbarrier_waiters;
  std::size_t kept = 0;
  for (Thread* thread : waiters) {
    if (thread->mbarrier == barrier && thread->parity != parity) {
      thread->wait = Wait::none;
      gathered_.push_back(thread);
    } else {
      waiters[kept++] = thread;
    }
  }
  waiters.resize(kept);
  memory_changed = true;  // polling threads may proceed
  release_gathered(owner, false);
}

void complete_bytes(Worker& worker, Block& owner, std::uint64_t* barrier, std::uint32_t bytes) {
  if (!State::valid(*barrier)) {
    worker.fail("a bulk copy lands for an mbarrier that was not initialized, or was overwritten",
                Place{});
  }
  State state(*barrier);
  state.bytes -= bytes;
  if (state.bytes < -most) {
    worker.fail("more bytes land for an mbarrier than it can count", Place{});
  }
  write(worker, owner, barrier, state);
}

std::string what_is_missing(std::uint64_t barrier) {
  if (!State::valid(barrier)) return "which has been overwritten";
  const State state(barrier);
  std::string text = "which lacks " + std::to_string(state.pending) + " of " +
                     std::to_string(state.expected) + " arrivals";
  if (state.bytes > 0) text += " and " + std::to_string(state.bytes) + " bytes";
  if (state.bytes < 0) {
    text += " and has " + std::to_string(-state.bytes) + " bytes more than announced";
  }
  return text;
}

}  // namespace rung::simt
