// SPDX-License-Identifier: Apache-2.0
// The thread team: one parallel region of OpenMP a call, barriers that spin before they yield.
#include "rung/cpu/team.hpp"

#include <omp.h>

#include <exception>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rung::cpu {

void Barrier::pause(int spin) {
  // About 20 us of spinning before the first yield: longer than the skew of well-balanced shares.
  constexpr int spins = 1000;
  if (spin >= spins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  _mm_pause();
#endif
}

namespace detail {

void run_parallel(int threads, void (*body)(const Team&, void*), void* data) {
  Barrier barrier;
#pragma omp parallel num_threads(threads)
  body(Team(omp_get_thread_num(), omp_get_num_threads(), &barrier), data);
}

}  // namespace detail
}  // namespace rung::cpu
