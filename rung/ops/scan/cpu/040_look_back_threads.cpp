// SPDX-License-Identifier: Apache-2.0
// scan / look-back threads
//
// Idea     threads draw chunks in order, one after another. While a thread scans a chunk, which
//          is in its L2 by then, it sums the one that it has drawn next, vector by vector in
//          turn, which brings that to L2. Then it waits for the carry into it, publishes the carry
//          behind it, and goes on: the chain of carries runs a chunk ahead of the scanning.
// Changes  against two_pass_threads: no chunk comes from memory twice, and nobody waits for all.
// Cost     8 bytes of traffic for each float; the core reads each chunk twice.
// Limits   memory bandwidth; short lines are scheduled whole.
// Tried    on a 2-core Zen 5 vCPU, two threads, where memory gave a copy 57 GB/s: a chunk summed,
//          then scanned, so that memory is read and written by turns, 44 to 48 (the same moves
//          without the arithmetic); both interleaved in runs of 256 to 1024 bytes 54, of 4 KiB 43;
//          in chunks of 64 KiB 50 to 53, of 128 KiB as with 256. With it, 2^27 floats 14.3, 21.2
//          and
//          16.7 ms in three runs, where whoever found no carry summed, waited, scanned in 14.8,
//          22.3 and
//          16.0: memory shared with others varies more than that. 2^26 floats: chunks of 512 KiB
//          and asking for pages ahead while summing: no difference.
// Source   D. Merrill & M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back,
//          2016, on GPUs; here the chain is one of cores, and the carry is always the one before.
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

double estimate(const Scan::Args& args, const Context&) { return chunk_seconds(args, 1); }

const Rung<Scan> self{{.name = "look_back_threads",
                       .step = 40,
                       .after = "two_pass_threads",
                       .estimate = estimate,
                       .run = run}};
}  // namespace
}  // namespace rung
