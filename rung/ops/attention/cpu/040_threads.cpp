// SPDX-License-Identifier: Apache-2.0
// attention / threads
//
// Idea     A team of threads takes blocks of 64 rows from a counter. If blocks are few (a query
//          against a long cache), the keys of each block are split, too, and the partial results of
//          a row are combined in the order of the keys.
// Changes  against simd: the same kernel on every core. The split of the keys depends on the shape
//          alone, so that results are bitwise equal for any number of threads.
// Cost     Same as simd; each split writes Dv + 2 elements per row.
// Limits   All valid arguments.
// Source   T. Dao and others, Flash-Decoding for long-context inference, 2023.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rung/core/integer.hpp"
#include "rung/cpu/piece_work.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/attention/cpu/detail/block.hpp"
#include "rung/ops/attention/cpu/detail/heads.hpp"

namespace rung {
namespace {
using namespace attention_cpu;

struct KeySplits {
  std::int64_t row_blocks;  // per head of k and v
  std::int64_t splits;      // of the keys that a row block sees
  std::int64_t keys;        // per split, a multiple of key_tile
  [[nodiscard]] std::int64_t units(const Attention::Args& args) const {
    return args.batch() * args.kv_heads() * row_blocks * splits;
  }
};

KeySplits plan_of(const Attention::Args& args) {
  constexpr std::int64_t enough_units = 64;  // occupy the cores of most machines
  constexpr std::int64_t min_keys = 512;     // so that reading outweighs combining
  KeySplits plan{};
  plan.row_blocks = ceil_div(stacked_rows(args), block_rows);
  const std::int64_t blocks = args.batch() * args.kv_heads() * plan.row_blocks;
  const std::int64_t keys = args.most_keys(args.queries_of(block_rows));
  const std::int64_t splits = std::clamp<std::int64_t>(
      std::min(enough_units / std::max<std::int64_t>(blocks, 1), keys / min_keys), 1, enough_units);
  const std::int64_t tiles = ceil_div(keys, key_tile);
  plan.keys = std::max<std::int64_t>((tiles + splits - 1) / splits, 1) * key_tile;
  plan.splits = std::max<std::int64_t>((keys + plan.keys - 1) / plan.keys, 1);
  return plan;
}

/// Returns the first key that a row sees; later rows see no key before it.
std::int64_t first_key_of(const Attention::Args& args, std::int64_t b, std::int64_t row) {
  if (args.options.window == 0) return 0;
  std::int64_t first = 0;
  with_heads(args, [&](const auto& p) { first = p.mask(b).first_key(row / p.group); });
  return first;
}

/// Combines the partial results of a row, `pitch` elements apart, and writes o and lse.
template <class T>
void combine(const Heads<T>& p, std::int64_t b, std::int64_t h, std::int64_t i,
             const typename Heads<T>::Sum* parts, std::int64_t pitch, std::int64_t splits) {
  using Sum = typename Heads<T>::Sum;
  const std::int64_t width = p.value_width();
  Sum maximum = std::numeric_limits<Sum>::lowest();
  for (std::int64_t split = 0; split < splits; ++split) {
    maximum = std::fmax(maximum, parts[split * pitch + width]);
  }
  const auto share = [&](std::int64_t split) {
    return std::exp2(parts[split * pitch + width] - maximum);
  };
  Sum sum = 0;
  for (std::int64_t split = 0; split < splits; ++split) {
    sum += share(split) * parts[split * pitch + width + 1];
  }
  const Sum divisor = divisor_of(sum);
  for (std::int64_t c = 0; c < width; ++c) {
    Sum value = 0;
    for (std::int64_t split = 0; split < splits; ++split) {
      value += share(split) * parts[split * pitch + c];
    }
    p.o(b, h, i, c) = static_cast<T>(value / divisor);
  }
  constexpr Sum ln_2 = Sum(0.693147180559945309417L);
  p.write_lse(b, h, i,
              sum == 0 ? -std::numeric_limits<Sum>::infinity() : maximum * ln_2 + std::log(sum));
}

/// Returns the operations of both products, with rows padded to 16 and Dv to 64.
double operations_of(const Attention::Args& args) {
  const auto heads = static_cast<double>(args.batch() * args.kv_heads());
  const double seen =
      args.visible_pairs() / static_cast<double>(std::max<std::int64_t>(args.queries(), 1));
  const std::int64_t columns = args.width() + round_up(args.value_width(), 64);
  return 2 * heads * seen * static_cast<double>(round_up(stacked_rows(args), 16) * columns);
}

/// Returns the thread count that gives each thread at least 2^19 operations.
int useful_threads(const Attention::Args& args, int available) {
  constexpr double of_each = 1 << 19;
  return static_cast<int>(
      std::clamp(operations_of(args) / of_each, 1.0, static_cast<double>(available)));
}

/// Returns the work of the blocks of rows, each of which transposes its queries and converts the
/// keys and values it sees.
Work work(const Attention::Args& args, const Context& context) {
  Work work =
      cpu::piece_work(args.batch() * args.kv_heads() * ceil_div(stacked_rows(args), block_rows),
                      operations_of(args) / block_rows, useful_threads(args, context.threads()),
                      type_path(args.q.dtype));
  work.operations = operations_of(args);
  return work;
}

void run(const Attention::Args& args, Context& context) {
  const KeySplits plan = plan_of(args);
  const int threads = useful_threads(args, context.threads());
  const std::int64_t rows = stacked_rows(args);
  const std::int64_t scratch = scratch_bytes(args);
  const auto size = static_cast<std::int64_t>(args.q.dtype == DType::f64 ? 8 : 4);
  // [batch][kv_head][row block][split][row of the block][Dv + 2]
  const std::int64_t part_bytes = block_rows * (args.value_width() + 2) * size;
  const std::int64_t partial = plan.splits > 1 ? plan.units(args) * part_bytes : 0;
  auto* const memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * scratch + partial)));
  std::byte* const parts = memory + threads * scratch;
  Attend* const attend = attend_for(args.q.dtype);
  std::atomic<std::int64_t> next{0};
  const auto ranks = plan.splits > 1 ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    for (std::int64_t unit = next++; unit < plan.units(args); unit = next++) {
      const std::int64_t split = unit % plan.splits;
      // Start with the last rows, which see the most keys under a causal mask.
      const std::int64_t row_block = plan.row_blocks - 1 - unit / plan.splits % plan.row_blocks;
      const std::int64_t head = unit / plan.splits / plan.row_blocks;
      const std::int64_t at = (head * plan.row_blocks + row_block) * plan.splits + split;
      const std::int64_t b = head / args.kv_heads();
      const std::int64_t first = first_key_of(args, b, row_block * block_rows);
      attend(args,
             {.b = b,
              .g = head % args.kv_heads(),
              .first_row = row_block * block_rows,
              .rows = std::min(block_rows, rows - row_block * block_rows),
              .first_key = std::min(first + split * plan.keys, args.keys()),
              .last_key = std::min(first + (split + 1) * plan.keys, args.keys()),
              .partial = plan.splits > 1 ? parts + at * part_bytes : nullptr},
             memory + team.rank() * scratch);
    }
    if (plan.splits == 1) return;
    team.wait();
    with_heads(args, [&]<class T>(const Heads<T>& p) {
      using Sum = typename Heads<T>::Sum;
      const cpu::Range mine = team.share(args.batch() * args.kv_heads() * rows);
      for (std::int64_t at = mine.begin; at < mine.end; ++at) {
        const std::int64_t row = at % rows;
        const std::int64_t head = at / rows;
        const std::int64_t b = head / args.kv_heads();
        const std::int64_t g = head % args.kv_heads();
        const std::int64_t block = head * plan.row_blocks + row / block_rows;
        const auto* const first =
            reinterpret_cast<const Sum*>(parts + block * plan.splits * part_bytes) +
            row % block_rows * (p.value_width() + 2);
        combine(p, b, g * p.group + row % p.group, row / p.group, first,
                block_rows * (p.value_width() + 2), plan.splits);
      }
    });
  });
}

Support supports(const Attention::Args& args, const Context&) { return require_basic(args); }

const Rung<Attention> self{{.name = "threads",
                            .step = 40,
                            .after = "simd",
                            .supports = supports,
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
