// SPDX-License-Identifier: Apache-2.0
// reduce / threads
//
// Idea     everything before, for every call, by a team: rows and columns as they are in memory,
//          short rows and segments in batches, the rest gathered piece by piece into L1 and folded
//          there.
// Changes  against pairwise: several threads; f16, bf16 and the small integers are widened on their
//          way through L1; segments and any strides.
// Cost     x read once; 16 bytes for each chunk of 16384 elements or more where threads share a
//          result.
// Limits   every valid call. Strided elements are gathered one by one.
// Bits     cuts follow from shapes and strides, not from the number of threads.
// Tried    on a 2-core Zen 5 vCPU: 16 chains for extremes (0.87 of the fastest peer at 64 MiB,
//          where 8 made 0.96: too few mask registers); lines prefetched into L2 (4 MiB: 79 GB/s,
//          into L1 117); two or four pages in parallel in L2 (140 GB/s, one 190); chunks of 16384
//          at 4 and 64 MiB (0.97 of the speed with 32768 and more).
// Source   -
#include <unistd.h>
#include <exception>

#include "rung/ops/reduce/cpu/detail/engine.hpp"
#include "rung/ops/reduce/cpu/detail/row_engine.hpp"

// The engine along rows: who does what of a call, and with which memory.
namespace rung::reduce_cpu {
namespace {

/// Keeps what a thread of a team throws: an exception must not leave a parallel region.
class FirstError {
 public:
  template <class F>
  void guard(F&& f) noexcept {
    try {
      f();
    } catch (...) {
      if (!taken_.exchange(true)) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> taken_ = false;
  std::exception_ptr error_;
};

template <class W>
void run(const Reduce::Args& args, Context& context, int threads) {
  const RowEngine<W> plan(args);
  constexpr std::int64_t buffer_bytes = RowEngine<W>::buffer_bytes;
  // Whole results in each thread, or chunks for all of them where results are fewer than threads.
  const bool split = plan.chunks() > 1 && threads > 1 && args.results() < 2 * threads;
  const std::int64_t pairs = split ? args.results() * plan.chunks() : 0;
  const std::int64_t buffers = plan.gathers() ? threads * buffer_bytes : 0;
  std::byte* workspace = nullptr;
  if (pairs + buffers > 0) {
    const std::size_t bytes = static_cast<std::size_t>(pairs) * 2 * sizeof(W);
    workspace =
        static_cast<std::byte*>(context.workspace(bytes + static_cast<std::size_t>(buffers)));
  }
  W* value = reinterpret_cast<W*>(workspace + buffers);
  W* rest = value + pairs;
  FirstError error;
  std::atomic<std::int64_t> next = 0;
  const auto ranks = split ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    RowEngine<W> engine = plan;
    if (plan.gathers()) engine.gather_in(workspace + team.rank() * buffer_bytes);
    if (plan.chunks() > 1) {
      if (split) {
        error.guard([&] { engine.some_chunks(team, value, rest); });
        team.wait();
      }
      error.guard([&] { engine.few_results(team, split ? value : nullptr, rest); });
    } else if (args.has_segments()) {
      error.guard([&] { engine.batches_of_segments(next); });
    } else {
      engine.many_results(team);
    }
  });
  error.rethrow();
}

/// A row just too long for an L1 of 48 KiB, which it shares with other data, is read in eight
/// streams, of which L1 keeps more than half from one time to the next; one stream replaces each
/// line before its turn comes (64 KiB, 2-core Zen 5 vCPU: 360 GB/s instead of 180; 270 instead of
/// 170 behind a loop that has just written it; 4 to 8 % slower when it comes from L2 or beyond). Of
/// an L1 of 32 KiB it is twice the size, and nothing is kept (2-core Zen 4 vCPU: 90 GB/s, straight
/// on 106).
Reading reading_of_one(std::int64_t bytes) {
  constexpr std::int64_t within_l1 = 40 << 10;
  constexpr std::int64_t about_l1 = 64 << 10;
  static const bool l1_is_large = sysconf(_SC_LEVEL1_DCACHE_SIZE) >= 48 << 10;
  return l1_is_large && bytes > within_l1 && bytes <= about_l1 ? Reading::streams : Reading::near;
}

template <class W>
void one_row(const Reduce::Args& args) {
  const std::int64_t length = args.terms.size();
  const std::int64_t bytes = length * static_cast<std::int64_t>(size_of(args.x.dtype));
  W value;
  W rest;
  fold_rows(args.x.dtype, fold_of(args.operation),
            {.x = args.x.data,
             .stride = 0,
             .rows = 1,
             .length = length,
             .value = &value,
             .rest = &rest,
             .arg = args.is_arg(),
             .reading = args.is_arg() ? Reading::near : reading_of_one(bytes)});
  store_results(args, 0, 0, 1, &value, &rest, length);
}

}  // namespace

bool reduce_one_row(const Reduce::Args& args) {
  if (args.kept.size() != 1 || args.has_segments() || !args.terms.is_contiguous()) return false;
  if (args.terms.size() > min_chunk || folded_as(args.x.dtype) != args.x.dtype) return false;
  is_floating(args.x.dtype) ? one_row<double>(args) : one_row<std::int64_t>(args);
  return true;
}

void reduce_rows(const Reduce::Args& args, Context& context, int threads) {
  if (args.results() == 0) return;
  if (is_floating(args.x.dtype)) {
    run<double>(args, context, threads);
  } else {
    run<std::int64_t>(args, context, threads);
  }
}

}  // namespace rung::reduce_cpu

namespace rung {
namespace {
using namespace reduce_cpu;

double estimate(const Reduce::Args& args, const Context& context) {
  return 1e-7 + Reduce::cost(args).bytes / (40e9 * useful_threads(args, context));
}

void run(const Reduce::Args& args, Context& context) {
  if (reduce_one_row(args) || reduce_one_tile(args, context)) return;
  const int threads = useful_threads(args, context);
  if (walk_of(args) == Walk::columns) {
    reduce_columns(args, context, threads);
  } else {
    reduce_rows(args, context, threads);
  }
}

const Rung<Reduce> self{
    {.name = "threads", .step = 60, .after = "pairwise", .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
