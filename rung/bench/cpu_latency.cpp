// SPDX-License-Identifier: Apache-2.0
// Latency of each memory level of a CPU, and rate of atomic additions.
#include <atomic>
#include <bit>
#include <cstdlib>
#include <memory>

#include "rung/bench/chain.hpp"
#include "rung/bench/cpu_rates.hpp"

namespace rung::bench {
namespace {

constexpr std::size_t line_bytes = 64;

struct alignas(line_bytes) Line {
  const Line* next = nullptr;
};

struct alignas(line_bytes) Counter {
  std::atomic<std::uint64_t> value{0};
};

struct Counters {
  std::vector<Counter> of_thread;
  bool one_address = false;
};

constexpr long steps_per_repeat = 1024;

void follow(int /*rank*/, long repeats, void* data) {
  auto& at = *static_cast<const Line**>(data);
  const Line* line = at;
  for (long i = 0; i < repeats * steps_per_repeat; ++i) {
    line = line->next;
    asm volatile("" : "+r"(line));  // keeps every load, and keeps loads dependent
  }
  at = line;
}

void add(int rank, long repeats, void* data) {
  auto& counters = *static_cast<Counters*>(data);
  auto& mine = counters.of_thread[counters.one_address ? 0 : static_cast<std::size_t>(rank)].value;
  for (long i = 0; i < repeats * steps_per_repeat; ++i)
    mine.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Rate latency_rate(std::size_t bytes) {
  const std::size_t lines = std::bit_floor(bytes / line_bytes);
  if (lines < 2) return {};
  std::vector<Line> chain(lines);
  for (std::size_t i = 0; i < lines; ++i) chain[i].next = &chain[line_after(i, lines)];
  const Line* at = chain.data();
  follow(0, static_cast<long>(std::min(lines, std::size_t{1} << 16) / steps_per_repeat), &at);
  return best_rate(time_on_threads(1, follow, &at), steps_per_repeat);
}

Rate atomic_rate(bool one_address, int threads) {
  Counters counters{std::vector<Counter>(static_cast<std::size_t>(threads)), one_address};
  return best_rate(time_on_threads(threads, add, &counters),
                   static_cast<double>(steps_per_repeat) * threads);
}

}  // namespace rung::bench
