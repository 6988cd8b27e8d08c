// SPDX-License-Identifier: Apache-2.0
// cuda::barrier, cuda::memcpy_async and cuda::pipeline. Copies into shared memory are performed as
// late as possible: when a thread waits for their barrier or pipeline stage.
#pragma once

#include "rung/simt/async_copy.hpp"
#include "rung/simt/bulk_copy.hpp"
#include "rung/simt/mbarrier.hpp"
#include "rung_cuda/atomic_classes.h"
#include "rung_cuda/group_algorithms.h"

namespace cuda {

struct rung_no_completion {};

template <thread_scope scope, class Completion = rung_no_completion>
class barrier {
 public:
  using arrival_token = unsigned long long;
  barrier() = default;
  explicit barrier(long expected) { init(this, expected); }
  barrier(const barrier&) = delete;

  friend void init(barrier* one, long expected, RungPlace place = RungPlace::current()) {
    rung::simt::mbarrier_init(one->word(), static_cast<int>(expected), place);
    one->phase_ = 0;
  }
  /// Arrives at the barrier. The returned token is the state of the current phase.
  [[nodiscard]] arrival_token arrive(long count = 1, RungPlace place = RungPlace::current()) {
    const arrival_token token = rung::simt::mbarrier_state(word(), place);
    rung::simt::mbarrier_arrive(word(), 0, place, static_cast<int>(count));
    return token;
  }
  void wait(arrival_token&& token, RungPlace place = RungPlace::current()) const {
    rung::simt::mbarrier_wait(const_cast<barrier*>(this)->word(),
                              rung::simt::mbarrier_parity(token), place, true);
  }
  void wait_parity(bool parity, RungPlace place = RungPlace::current()) const {
    rung::simt::mbarrier_wait(const_cast<barrier*>(this)->word(), parity, place);
  }
  void arrive_and_wait(RungPlace place = RungPlace::current()) { wait(arrive(1, place), place); }
  void arrive_and_drop(RungPlace place = RungPlace::current()) {
    rung::simt::mbarrier_drop(word(), 0, place);
  }

 private:
  std::uint64_t* word() { return reinterpret_cast<std::uint64_t*>(&state_); }
  std::uint64_t state_;
  std::uint64_t phase_;
};

namespace device {
template <thread_scope scope, class Completion>
inline std::uint64_t* barrier_native_handle(barrier<scope, Completion>& one) {
  return reinterpret_cast<std::uint64_t*>(&one);
}
/// Announces `bytes` bytes of copies (expect_tx) and arrives.
template <thread_scope scope, class Completion>
inline typename barrier<scope, Completion>::arrival_token barrier_arrive_tx(
    barrier<scope, Completion>& one, long count, long bytes,
    RungPlace place = RungPlace::current()) {
  std::uint64_t* const word = barrier_native_handle(one);
  const auto token = rung::simt::mbarrier_state(word, place);
  rung::simt::mbarrier_arrive(word, static_cast<std::uint32_t>(bytes), place,
                              static_cast<int>(count));
  return token;
}
template <thread_scope scope, class Completion>
inline void barrier_expect_tx(barrier<scope, Completion>& one, long bytes,
                              RungPlace place = RungPlace::current()) {
  rung::simt::mbarrier_expect(barrier_native_handle(one), static_cast<std::uint32_t>(bytes), place);
}
/// Issues a copy by one thread. The barrier counts its bytes; expect_tx must announce them
/// separately.
template <class T, class Size, thread_scope scope, class Completion>
inline void memcpy_async_tx(T* to, const T* from, Size bytes, barrier<scope, Completion>& one,
                            RungPlace place = RungPlace::current()) {
  rung::simt::bulk_load(to, from, static_cast<std::uint32_t>(size_t(bytes)),
                        barrier_native_handle(one), place);
}
}  // namespace device

template <size_t alignment>
struct aligned_size_t {
  size_t value;
  explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

enum class pipeline_role { producer, consumer };

/// Shared state of a pipeline: for each stage, a barrier at which producers commit and a barrier at
/// which consumers release.
template <thread_scope scope, unsigned char stages>
struct pipeline_shared_state {
  std::uint64_t rung_full[stages], rung_empty[stages];
};

/// Pipeline of a single thread, or of a group whose stages pass between producers and consumers
/// through barriers.
template <thread_scope scope>
class pipeline {
 public:
  pipeline() = default;
  pipeline(std::uint64_t* full, std::uint64_t* empty, unsigned stages)
      : full_(full), empty_(empty), stages_(stages) {}
  void producer_acquire(RungPlace place = RungPlace::current()) {
    // Stages that were never used are empty.
    if (full_ != nullptr) await(empty_, produced_, 1, place);
  }
  void producer_commit(RungPlace place = RungPlace::current()) {
    if (full_ != nullptr) {
      rung::simt::mbarrier_arrive(full_ + produced_ % stages_, 0, place);
    } else {
      rung::simt::async_commit();
    }
    ++produced_;
  }
  void consumer_wait(RungPlace place = RungPlace::current()) {
    if (full_ != nullptr) {
      await(full_, consumed_, 0, place);
    } else if (produced_ > consumed_) {
      rung::simt::async_wait_group(static_cast<int>(produced_ - consumed_ - 1));
    }
  }
  void consumer_release(RungPlace place = RungPlace::current()) {
    if (full_ != nullptr) rung::simt::mbarrier_arrive(empty_ + consumed_ % stages_, 0, place);
    ++consumed_;
  }
  bool quit() { return true; }
  /// Waits for all committed stages except the latest `prior`.
  void rung_wait_prior(unsigned prior, RungPlace place) {
    if (full_ == nullptr) {
      rung::simt::async_wait_group(static_cast<int>(prior));
    } else if (produced_ > prior) {
      await(full_, produced_ - prior - 1, 0, place);
    }
  }
  /// Returns the barrier that copies of the current stage signal; null if each thread waits for its
  /// own copies.
  std::uint64_t* rung_barrier() {
    return full_ != nullptr ? full_ + produced_ % stages_ : nullptr;
  }

 private:
  void await(std::uint64_t* barriers, unsigned batch, unsigned opposite, const RungPlace& place) {
    rung::simt::mbarrier_wait(barriers + batch % stages_, (batch / stages_ & 1) ^ opposite, place,
                              true);
  }
  std::uint64_t* full_ = nullptr;
  std::uint64_t* empty_ = nullptr;
  unsigned stages_ = 1, produced_ = 0, consumed_ = 0;
};

template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> rung_make_pipeline(const Group& group,
                                          pipeline_shared_state<scope, stages>* state,
                                          unsigned producers, unsigned consumers,
                                          const RungPlace& place) {
  if (group.thread_rank() == 0) {
    for (unsigned i = 0; i < stages; ++i) {
      rung::simt::mbarrier_init(state->rung_full + i, static_cast<int>(producers), place);
      rung::simt::mbarrier_init(state->rung_empty + i, static_cast<int>(consumers), place);
    }
  }
  group.sync();
  return {state->rung_full, state->rung_empty, stages};
}
/// Creates a pipeline in which every thread produces and consumes.
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group& group,
                                     pipeline_shared_state<scope, stages>* state,
                                     RungPlace place = RungPlace::current()) {
  const auto size = static_cast<unsigned>(group.size());
  return rung_make_pipeline(group, state, size, size, place);
}
/// Creates a pipeline in which the first `producers` threads produce and the others consume.
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group& group,
                                     pipeline_shared_state<scope, stages>* state, size_t producers,
                                     RungPlace place = RungPlace::current()) {
  const auto size = static_cast<unsigned>(group.size());
  const auto first = static_cast<unsigned>(producers);
  return rung_make_pipeline(group, state, first, size - first, place);
}
/// Creates a pipeline in which each thread states its role.
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group& group,
                                     pipeline_shared_state<scope, stages>* state,
                                     const pipeline_role& role,
                                     RungPlace place = RungPlace::current()) {
  if (group.thread_rank() == 0) state->rung_full[0] = 0;
  group.sync();
  if (role == pipeline_role::producer) atomicAdd((unsigned long long*)state->rung_full, 1ull);
  group.sync();
  const auto producers = static_cast<unsigned>(state->rung_full[0]);
  group.sync();
  return rung_make_pipeline(group, state, producers,
                            static_cast<unsigned>(group.size()) - producers, place);
}
inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <unsigned char prior, thread_scope scope>
inline void pipeline_consumer_wait_prior(pipeline<scope>& one,
                                         RungPlace place = RungPlace::current()) {
  one.rung_wait_prior(prior, place);
}

template <thread_scope scope, class Completion>
inline std::uint64_t* rung_barrier_of(barrier<scope, Completion>& one) {
  return device::barrier_native_handle(one);
}
template <thread_scope scope>
inline std::uint64_t* rung_barrier_of(pipeline<scope>& one) {
  return one.rung_barrier();
}
template <class Sync>
inline void memcpy_async(void* to, const void* from, size_t bytes, Sync&& sync,
                         RungPlace place = RungPlace::current()) {
  std::uint64_t* const barrier = rung_barrier_of(sync);
  if (!rung::simt::in_own_shared_memory(to, bytes)) {
    rung::cuda::hooked::memcpy(to, from, bytes);
  } else if (barrier == nullptr || !rung::simt::in_own_shared_memory(barrier, sizeof(*barrier))) {
    rung::simt::async_copy_bytes(to, from, bytes, place);
    if (barrier != nullptr) rung::simt::async_wait_all();
  } else {
    rung::simt::async_read(from, bytes, place);
    rung::simt::async_load(to, from, bytes, barrier, place);
  }
}
/// Distributes the copy over the group's threads, word by word. If a barrier in shared memory
/// tracks the copy, the first thread issues it as one copy.
template <class Group, class T, class From, class Sync>
  requires requires(const Group& g) { g.thread_rank(); }
inline void memcpy_async(const Group& group, T* to, const From* from, size_t bytes, Sync&& sync,
                         RungPlace place = RungPlace::current()) {
  std::uint64_t* const barrier = rung_barrier_of(sync);
  const bool counted =
      barrier != nullptr && rung::simt::in_own_shared_memory(barrier, sizeof(*barrier));
  if (counted && rung::simt::in_own_shared_memory(to, bytes)) {
    cooperative_groups::rung_for_each_word(
        group, to, from, bytes, [&](void*, const void* word, size_t unit) {
          rung::simt::async_read(word, unit, place);
        });
    if (group.thread_rank() == 0) rung::simt::async_load(to, from, bytes, barrier, place);
    return;
  }
  cooperative_groups::rung_copy(group, to, from, bytes, place);
  if (barrier != nullptr) rung::simt::async_wait_all();
}

}  // namespace cuda
