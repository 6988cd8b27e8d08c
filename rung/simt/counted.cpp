// SPDX-License-Identifier: Apache-2.0
// Counted arithmetic: totals over all simulated threads.
#include "rung/simt/counted.hpp"

#include <atomic>

namespace rung::simt {
namespace {

struct Sums {
  std::atomic<std::uint64_t> additions{0};
  std::atomic<std::uint64_t> multiplications{0};
  std::atomic<std::uint64_t> divisions{0};
};
constinit Sums sums;

void count(std::atomic<std::uint64_t>& sum) { sum.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void count_addition() { count(sums.additions); }
void count_multiplication() { count(sums.multiplications); }
void count_division() { count(sums.divisions); }

Operations take_operations() {
  return {sums.additions.exchange(0), sums.multiplications.exchange(0), sums.divisions.exchange(0)};
}

}  // namespace rung::simt
