// SPDX-License-Identifier: Apache-2.0
// scan / look-back threads
//
// Idea     threads take chunks in order, one after another. Whoever finds the carry into his chunk
//          published scans it at once. Otherwise he sums the chunk, which brings it into his L2,
//          waits for the carry, publishes the next one, and only then scans: the chain of carries
//          runs ahead of the scanning.
// Changes  against two_pass_threads: no chunk comes from memory twice, and nobody waits for all.
// Cost     8 bytes of traffic for each float; half the chunks or fewer are read twice by the core.
// Limits   memory bandwidth; short lines are dealt out whole.
// Tried    on a 2-core Zen 5 vCPU, 2^26 floats, two threads: chunks of 128 KiB (4 % slower) or 512
//          KiB, asking for pages ahead while summing, prefetching x into L2 too: no difference.
//          Drawing the next chunk early and asking for it while this one is scanned, in chunks of
//          64 to 256 KiB: no gain, and slower where both threads share a core.
// Source   D. Merrill & M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back,
//          2016, on GPUs; here the chain is one of cores, and the carry is always the one before.
#include <atomic>
#include <new>
#include <thread>

#include "rung/cpu/team.hpp"
#include "rung/ops/scan/cpu_chunks.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rung {
namespace {
using namespace scan_cpu;

/// The carry after a chunk, once it is known.
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
      // With more threads than cores, the one awaited may need this core.
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
  for (;;) {
    const std::int64_t item = next.fetch_add(1, std::memory_order_relaxed);
    if (item >= chunks.items()) return chunks.finish();
    const bool onward = !chunks.is_last(item);
    if (chunks.is_first(item) || slots[item - 1].is_ready()) {
      const Carry carry = chunks.is_first(item) ? chunks.identity() : slots[item - 1].carry;
      const Carry after = chunks.scan(item, carry, onward, rank);
      if (onward) slots[item].publish(after);
      continue;
    }
    Chunks::Total total;
    if (onward) total = chunks.total(item, rank);
    slots[item - 1].wait();
    const Carry carry = slots[item - 1].carry;
    if (onward) slots[item].publish(chunks.after(carry, total));
    chunks.scan(item, carry, false, rank);
  }
}

void run(const Scan::Args& args, Context& context) {
  if (args.y.empty()) return;
  const int threads = useful_threads(args, context);
  const auto lines = static_cast<std::size_t>(args.lines.size());
  const bool cut = threads > 1 && most_chunks(args.length()) > 1;
  const std::size_t slot_bytes = cut ? lines * most_chunks(args.length()) * sizeof(Slot) : 0;
  const Chunks chunks(args, context, threads, slot_bytes);
  if (threads == 1 || chunks.chunks() == 1) {
    cpu::run_team(threads, [&](const cpu::Team& team) {
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
  cpu::run_team(threads,
                [&](const cpu::Team& team) { scan_cut(chunks, slots, next, team.rank()); });
}

double estimate(const Scan::Args& args, const Context& context) {
  // Ahead of simd where that would do the same: one rung answers for all numbers of threads.
  return 0.99 * chunk_seconds(args, useful_threads(args, context), 1);
}

const Rung<Scan> self{{.name = "look_back_threads",
                       .step = 40,
                       .after = "two_pass_threads",
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
