// SPDX-License-Identifier: Apache-2.0
// cuda::barrier, cuda::memcpy_async and cuda::pipeline. Copies are done when they are issued.
#pragma once

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
  /// The token is the phase that the arrival belongs to.
  [[nodiscard]] arrival_token arrive(long count = 1, RungPlace place = RungPlace::current()) {
    const arrival_token token = phase();
    for (long i = 0; i < count; ++i) rung::simt::mbarrier_arrive(word(), 0, place);
    return token;
  }
  void wait(arrival_token&& token, RungPlace place = RungPlace::current()) const {
    rung::simt::mbarrier_wait(const_cast<barrier*>(this)->word(), static_cast<unsigned>(token & 1),
                              place);
  }
  void wait_parity(bool parity, RungPlace place = RungPlace::current()) const {
    rung::simt::mbarrier_wait(const_cast<barrier*>(this)->word(), parity, place);
  }
  void arrive_and_wait(RungPlace place = RungPlace::current()) { wait(arrive(1, place), place); }
  void arrive_and_drop(RungPlace place = RungPlace::current()) { (void)arrive(1, place); }

 private:
  std::uint64_t* word() { return reinterpret_cast<std::uint64_t*>(&state_); }
  /// The phase under way: its parity is the one whose completion has not been seen.
  arrival_token phase() {
    return rung::simt::mbarrier_try_wait(word(), 1, RungPlace::current()) ? 0 : 1;
  }
  std::uint64_t state_;
  std::uint64_t phase_;
};

namespace device {
template <thread_scope scope, class C>
inline std::uint64_t* barrier_native_handle(barrier<scope, C>& one) {
  return reinterpret_cast<std::uint64_t*>(&one);
}
}  // namespace device

template <size_t alignment>
struct aligned_size_t {
  size_t value;
  explicit constexpr aligned_size_t(size_t bytes) : value(bytes) {}
  constexpr operator size_t() const { return value; }
};

template <class Sync>
inline void memcpy_async(void* to, const void* from, size_t bytes, Sync&&) {
  memcpy(to, from, bytes);
}
template <class Group, class T, class U, class Sync>
  requires requires(const Group& g) { g.thread_rank(); }
inline void memcpy_async(const Group& group, T* to, const U* from, size_t bytes, Sync&&) {
  cooperative_groups::memcpy_async(group, reinterpret_cast<char*>(to),
                                   reinterpret_cast<const char*>(from), bytes);
}

template <thread_scope scope, unsigned char stages>
struct pipeline_shared_state {};
enum class pipeline_role { producer, consumer };

/// One for a thread of its own, or shared by a group: then its waits are the group's.
template <thread_scope scope>
class pipeline {
 public:
  explicit pipeline(bool of_block = false) : of_block_(of_block) {}
  void producer_acquire(RungPlace place = RungPlace::current()) {
    if (of_block_ && ++acquired_ > 1) __syncthreads(place);
  }
  void producer_commit() {}
  void consumer_wait(RungPlace place = RungPlace::current()) {
    if (of_block_) __syncthreads(place);
  }
  void consumer_release() {}
  bool quit() { return true; }

 private:
  bool of_block_;
  int acquired_ = 0;
};
template <class Group, thread_scope scope, unsigned char stages>
inline pipeline<scope> make_pipeline(const Group&, pipeline_shared_state<scope, stages>*) {
  return pipeline<scope>(true);
}
inline pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }
template <unsigned char prior, thread_scope scope>
inline void pipeline_consumer_wait_prior(pipeline<scope>& one,
                                         RungPlace place = RungPlace::current()) {
  one.consumer_wait(place);
}

}  // namespace cuda
