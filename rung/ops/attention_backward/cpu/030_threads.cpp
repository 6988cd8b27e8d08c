// SPDX-License-Identifier: Apache-2.0
// attention_backward / threads
//
// Idea     A team of threads takes heads of k and v from a counter. If heads are few, the keys of
//          each head are split into ranges, too, and the partial sums of dQ are added in the order
//          of the keys.
// Changes  The simd kernel on every core. The split of the keys depends on the shape alone, so that
//          results are bitwise equal for any number of threads.
// Cost     Same as simd; if keys are split, each range stores sums of dQ.
// Limits   All valid arguments. Few heads with many queries and few keys leave cores idle, because
//          the sums of dQ over all ranges are limited to 32 MiB.
// Source   T. Dao, FlashAttention-2, 2023, for splitting by keys.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/attention_backward/cpu/detail/gradients.hpp"
#include "rung/ops/attention_backward/cpu/detail/key_range.hpp"

namespace rung {
namespace {
using namespace attention_backward_cpu;

struct KeySplit {
  std::int64_t ranges;  // per head of k and v
  std::int64_t keys;    // per range
  std::int64_t bytes;   // of sums of dQ per range
  [[nodiscard]] std::int64_t units(const AttentionBackward::Args& args) const {
    return args.batch() * args.kv_heads() * ranges;
  }
};

KeySplit split_keys(const AttentionBackward::Args& args) {
  constexpr std::int64_t enough_units = 32;     // occupy the cores of most machines
  constexpr std::int64_t min_tiles = 4;         // per range: transposing outweighs combining
  constexpr std::int64_t max_bytes = 32 << 20;  // of sums of dQ over all ranges
  const std::int64_t tiles = ceil_div(args.keys(), key_tile);
  const std::int64_t heads = std::max<std::int64_t>(args.batch() * args.kv_heads(), 1);
  KeySplit split{};
  split.bytes = rows_of_group(args) * sum_pitch(args) * (args.q.dtype == DType::f64 ? 8 : 4);
  const std::int64_t most = std::min({enough_units / heads, tiles / min_tiles,
                                      max_bytes / std::max<std::int64_t>(split.bytes * heads, 1)});
  const std::int64_t ranges = std::max<std::int64_t>(most, 1);
  split.keys = std::max<std::int64_t>(ceil_div(tiles, ranges), 1) * key_tile;
  split.ranges = std::max<std::int64_t>(ceil_div(args.keys(), split.keys), 1);
  return split;
}

double operations_of(const AttentionBackward::Args& args) {
  return 2 * static_cast<double>(args.batch() * args.heads()) * args.visible_pairs() *
         static_cast<double>(3 * args.width() + 2 * args.value_width());
}

/// Returns the thread count, at most one per unit, that gives each thread at least 2^19 operations.
int useful_threads(const AttentionBackward::Args& args, const KeySplit& split, int available) {
  constexpr double of_each = 1 << 19;
  const double most = std::min(static_cast<double>(available),
                               static_cast<double>(std::max<std::int64_t>(split.units(args), 1)));
  return static_cast<int>(std::clamp(operations_of(args) / of_each, 1.0, most));
}

/// Returns the work of the tiles of keys, each of which converts the queries that see it.
Work work(const AttentionBackward::Args& args, const Context& context) {
  const std::int64_t tiles = ceil_div(args.keys(), key_tile);
  const double rows = args.visible_pairs() * static_cast<double>(args.group()) /
                      static_cast<double>(std::max<std::int64_t>(args.keys(), 1));
  return {.operations = operations_of(args),
          .blocks = args.batch() * args.kv_heads() * tiles,
          .steps = rows * static_cast<double>(args.width() + args.value_width()),
          .threads = useful_threads(args, split_keys(args), context.threads()),
          .path = size_of(args.q.dtype) == 2   ? "16-bit"
                  : args.q.dtype == DType::f64 ? "f64"
                                               : ""};
}

/// Adds up the ranges' sums of a row of dQ, which are `pitch` elements apart, and writes the row.
template <class T>
void combine_row(const Gradients<T>& p, std::int64_t b, std::int64_t h, std::int64_t i,
                 const Accumulator<T>* sums, std::int64_t pitch, std::int64_t ranges) {
  for (std::int64_t d = 0; d < p.width(); ++d) {
    Accumulator<T> sum = 0;
    for (std::int64_t range = 0; range < ranges; ++range) sum += sums[range * pitch + d];
    p.of_queries(p.dq, b)(h, i, d) = static_cast<T>(sum);
  }
}

void run(const AttentionBackward::Args& args, Context& context) {
  const KeySplit split = split_keys(args);
  const int threads = useful_threads(args, split, context.threads());
  const std::int64_t scratch = scratch_bytes(args);
  const bool is_split = split.ranges > 1;
  // [batch][kv_head][range][row of the group][sum_pitch]
  const std::int64_t partial = is_split ? split.units(args) * split.bytes : 0;
  auto* const memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * scratch + partial)));
  std::byte* const sums = memory + threads * scratch;
  Differentiate* const differentiate = differentiate_for(args.q.dtype);
  std::atomic<std::int64_t> next{0};
  const auto ranks = is_split ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    for (std::int64_t unit = next++; unit < split.units(args); unit = next++) {
      const std::int64_t head = unit / split.ranges;
      const std::int64_t first = unit % split.ranges * split.keys;
      differentiate(args,
                    {.b = head / args.kv_heads(),
                     .g = head % args.kv_heads(),
                     .first_key = first,
                     .last_key = std::min(first + split.keys, args.keys()),
                     .partial_dq = is_split ? sums + unit * split.bytes : nullptr},
                    memory + team.rank() * scratch);
    }
    if (args.has_sink_gradient()) {
      with_gradients(args, [&](const auto& p) {
        const cpu::Range mine = team.share(p.heads());
        for (std::int64_t h = mine.begin; h < mine.end; ++h) write_sink_gradient(p, h);
      });
    }
    if (!is_split) return;
    team.wait();
    with_gradients(args, [&]<class T>(const Gradients<T>& p) {
      using Sum = Accumulator<T>;
      const std::int64_t rows = rows_of_group(args);
      const std::int64_t pitch = sum_pitch(args);
      const cpu::Range mine = team.share(args.batch() * args.kv_heads() * rows);
      for (std::int64_t at = mine.begin; at < mine.end; ++at) {
        const std::int64_t row = at % rows;
        const std::int64_t head = at / rows;
        const std::int64_t b = head / p.kv_heads();
        if (row % p.queries() >= p.query_rows(b).count) continue;
        const auto* const first =
            reinterpret_cast<const Sum*>(sums + head * split.ranges * split.bytes) + row * pitch;
        combine_row(p, b, head % p.kv_heads() * p.group + row / p.queries(), row % p.queries(),
                    first, rows * pitch, split.ranges);
      }
    });
  });
}

const Rung<AttentionBackward> self{
    {.name = "threads", .step = 30, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
