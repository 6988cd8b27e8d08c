// SPDX-License-Identifier: Apache-2.0
// scan / look-back threads
//
// Idea     Threads draw chunks in order. While a thread scans a chunk from L2, it totals the next
//          chunk it has drawn, alternating by vector, which loads that chunk into L2. It then waits
//          for the carry into the next chunk and publishes the carry after it, so that the chain of
//          carries runs a chunk ahead of the scans.
// Changes  Against two_pass_threads: each chunk is loaded from memory once, and there is no
//          barrier.
// Cost     8 bytes of memory traffic per float; the core loads each chunk twice.
// Limits   Memory-bound; short lines are scheduled whole. EXPERIMENTS.md lists rejected variants.
// Source   D. Merrill & M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016
//          (on GPUs); this rung always waits for the predecessor's carry.
#include <atomic>
#include <new>
#include <thread>

#include "rung/cpu/team.hpp"
#include "rung/ops/scan/cpu/detail/chunks.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rung {
namespace {
using namespace scan_cpu;

/// Carry after a chunk, with a flag that publishes it.
struct Slot {
  Carry carry;
  std::atomic<bool> ready{false};

  void publish(Carry value) {
    carry = value;
    ready.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool is_ready() const { return ready.load(std::memory_order_acquire); }
  void wait() const {
    for (int spin = 0; !is_ready(); ++spin) {
      // With more threads than cores, the awaited thread may need this core.
      constexpr int spins = 4000;
      if (spin > spins) {
        std::this_thread::yield();
        continue;
      }
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
  }
};

void scan_cut(const Chunks& chunks, Slot* slots, std::atomic<std::int64_t>& next, int rank) {
  const std::int64_t items = chunks.items();
  std::int64_t item = next.fetch_add(1, std::memory_order_relaxed);
  Chunks::Total total;
  if (item < items) total = chunks.total(item, rank);
  while (item < items) {
    if (!chunks.is_first(item)) slots[item - 1].wait();
    const Carry carry = chunks.is_first(item) ? chunks.identity() : slots[item - 1].carry;
    if (!chunks.is_last(item)) slots[item].publish(chunks.after(carry, total));
    const std::int64_t following = next.fetch_add(1, std::memory_order_relaxed);
    if (following < items) {
      total = chunks.scan_and_total(item, carry, following, rank);
    } else {
      chunks.scan(item, carry, false, rank);
    }
    item = following;
  }
  chunks.finish();
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const int threads = useful_threads(args, context);
  const auto lines = static_cast<std::size_t>(args.lines.size());
  const bool cut = threads > 1 && max_chunks(args.length()) > 1;
  const std::size_t slot_bytes = cut ? lines * max_chunks(args.length()) * sizeof(Slot) : 0;
  const Chunks chunks(args, context, threads, slot_bytes);
  if (threads == 1 || chunks.chunks() == 1) {
    cpu::run_shares(threads, [&](const cpu::Team& team) {
      const cpu::Range mine = team.share(chunks.items());
      Carry carry;
      for (std::int64_t item = mine.begin; item < mine.end; ++item) {
        if (chunks.is_first(item)) carry = chunks.identity();
        carry = chunks.scan(item, carry, !chunks.is_last(item), team.rank());
      }
      chunks.finish();
    });
    return;
  }
  Slot* slots = static_cast<Slot*>(chunks.more());
  for (std::int64_t item = 0; item < chunks.items(); ++item) new (slots + item) Slot;
  std::atomic<std::int64_t> next{0};
  cpu::run_shares(threads,
                  [&](const cpu::Team& team) { scan_cut(chunks, slots, next, team.rank()); });
}

Work work(const Scan::Args& args, const Context& context) {
  return chunk_work(args, useful_threads(args, context), 1);
}

const Rung<Scan> self{{.name = "look_back_threads",
                       .step = 40,
                       .after = "two_pass_threads",
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
