// SPDX-License-Identifier: Apache-2.0
// attention / threads
//
// Idea     A team of threads takes blocks of 64 rows from a counter. If blocks are few (a query
//          against a long cache), the keys of each block are split, too, and the partial results of
//          a row are combined in the order of the keys.
// Changes  against simd: the same kernel on every core. The split of the keys depends on the shape
//          and the offsets of packed rows alone, so that results are bitwise equal for any number
//          of threads.
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
  std::int64_t row_blocks;  // of all batch elements, per head of k and v
  std::int64_t splits;      // of the keys that a row block sees
  std::int64_t keys;        // per split, a multiple of key_tile
  [[nodiscard]] std::int64_t units(const Attention::Args& args) const {
    return args.kv_heads() * row_blocks * splits;
  }
};

/// Returns the number of row blocks of all batch elements, per head of k and v.
std::int64_t count_row_blocks(const Attention::Args& args) {
  if (!args.has_query_offsets()) {
    return args.batch() * ceil_div(args.group() * args.queries(), block_rows);
  }
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < args.batch(); ++b) {
    count += ceil_div(stacked_rows(args, b), block_rows);
  }
  return count;
}

/// Returns the maximum number of keys of a batch element, key_lengths ignored.
std::int64_t most_keys_of_elements(const Attention::Args& args) {
  if (!args.has_key_offsets()) return args.keys();
  std::int64_t most = 0;
  for (std::int64_t b = 0; b < args.batch(); ++b) most = std::max(most, keys_of_element(args, b));
  return most;
}

KeySplits plan_of(const Attention::Args& args) {
  constexpr std::int64_t enough_units = 64;  // occupy the cores of most machines
  constexpr std::int64_t min_keys = 512;     // so that reading outweighs combining
  KeySplits plan{};
  plan.row_blocks = count_row_blocks(args);
  const std::int64_t blocks = args.kv_heads() * plan.row_blocks;
  const std::int64_t keys =
      std::min(args.most_keys(args.queries_of(block_rows)), most_keys_of_elements(args));
  const std::int64_t splits = std::clamp<std::int64_t>(
      std::min(enough_units / std::max<std::int64_t>(blocks, 1), keys / min_keys), 1, enough_units);
  const std::int64_t tiles = ceil_div(keys, key_tile);
  plan.keys = std::max<std::int64_t>((tiles + splits - 1) / splits, 1) * key_tile;
  plan.splits = std::max<std::int64_t>((keys + plan.keys - 1) / plan.keys, 1);
  return plan;
}

/// The blocks of rows of all batch elements, numbered by element, head of k and v, and row. Packed
/// elements differ in the number of their rows.
class RowBlocks {
 public:
  struct RowBlock {
    std::int64_t b, g;
    std::int64_t first_row, rows;
  };

  RowBlocks(const Attention::Args& args, std::int64_t* first)
      : first_(args.has_query_offsets() ? first : nullptr),
        kv_heads_(args.kv_heads()),
        rows_(args.group() * args.queries()) {
    if (first_ == nullptr) return;
    first[0] = 0;
    for (std::int64_t b = 0; b < args.batch(); ++b) {
      first[b + 1] = first[b] + ceil_div(stacked_rows(args, b), block_rows);
    }
  }
  /// Returns the number of elements of `first` above.
  static std::int64_t offset_count(const Attention::Args& args) {
    return args.has_query_offsets() ? args.batch() + 1 : 0;
  }
  /// Returns the block of a number. Blocks of a head begin with the last rows, which see the most
  /// keys under a causal mask.
  [[nodiscard]] RowBlock operator()(const Attention::Args& args, std::int64_t number) const {
    std::int64_t b = 0;
    std::int64_t before = 0;  // blocks per head of the elements before b
    std::int64_t blocks = ceil_div(rows_, block_rows);
    std::int64_t rows = rows_;
    if (first_ == nullptr) {
      b = number / (blocks * kv_heads_);
      before = b * blocks;
    } else {
      // The last of the elements that begin here: those before it have no rows.
      b = std::upper_bound(first_, first_ + args.batch(), number / kv_heads_) - first_ - 1;
      before = first_[b];
      blocks = first_[b + 1] - before;
      rows = stacked_rows(args, b);
    }
    const std::int64_t at = number - before * kv_heads_;
    const std::int64_t first_row = (blocks - 1 - at % blocks) * block_rows;
    return {b, at / blocks, first_row, std::min(block_rows, rows - first_row)};
  }

 private:
  const std::int64_t* first_;  // blocks before each batch element; null: all have rows_ rows
  std::int64_t kv_heads_;
  std::int64_t rows_;
};

/// Returns the first key that a row sees; later rows see no key before it.
std::int64_t first_key_of(const Attention::Args& args, std::int64_t b, std::int64_t row) {
  if (args.options.window == 0) return 0;
  std::int64_t first = 0;
  with_heads(args, [&](const auto& p) { first = p.mask(b).first_key(row / p.group); });
  return first;
}

/// Combines the partial results of a row, `pitch` elements apart, and writes o and lse.
template <class T, class K>
void combine(const Heads<T, K>& p, std::int64_t b, std::int64_t h, std::int64_t i,
             const Accumulator<T>* parts, std::int64_t pitch, std::int64_t splits) {
  using Sum = Accumulator<T>;
  const std::int64_t width = p.value_width();
  Sum maximum = std::numeric_limits<Sum>::lowest();
  for (std::int64_t split = 0; split < splits; ++split) {
    maximum = std::fmax(maximum, parts[split * pitch + width]);
  }
  Sum sum = 0;
  add_sink(sink_of(p, h), maximum, sum);
  const auto share = [&](std::int64_t split) {
    return std::exp2(parts[split * pitch + width] - maximum);
  };
  for (std::int64_t split = 0; split < splits; ++split) {
    sum += share(split) * parts[split * pitch + width + 1];
  }
  const Sum divisor = divisor_of(sum);
  const Sum scale = p.value_scale(b, h / p.group);
  const View<T, 1> result = p.o_of(b).at(h).at(i);
  for (std::int64_t c = 0; c < width; ++c) {
    Sum value = 0;
    for (std::int64_t split = 0; split < splits; ++split) {
      value += share(split) * parts[split * pitch + c];
    }
    result(c) = static_cast<T>(value / divisor * scale);
  }
  constexpr Sum ln_2 = Sum(0.693147180559945309417L);
  p.write_lse(b, h, i,
              sum == 0 ? -std::numeric_limits<Sum>::infinity() : maximum * ln_2 + std::log(sum));
}

/// Returns the operations of both products for `pairs` visible pairs of a head in `rows` rows, with
/// rows padded to 16 and Dv to 64.
double operations_of(const Attention::Args& args, std::int64_t rows, double pairs) {
  const double seen = pairs * static_cast<double>(args.group()) /
                      static_cast<double>(std::max<std::int64_t>(rows, 1));
  const std::int64_t columns = args.width() + round_up(args.value_width(), 64);
  return 2 * static_cast<double>(args.kv_heads()) * seen *
         static_cast<double>(round_up(rows, 16) * columns);
}

/// Returns the operations of a call whose batch elements are of typical size.
double typical_operations(const Attention::Args& args) {
  return static_cast<double>(args.batch()) *
         operations_of(args, args.group() * args.typical_queries(), args.visible_pairs());
}

/// Returns the operations of a call: of packed elements, which may differ by orders of magnitude,
/// those of each.
double exact_operations(const Attention::Args& args) {
  if (!args.is_packed()) return typical_operations(args);
  double sum = 0;
  for (std::int64_t b = 0; b < args.batch(); ++b) {
    const double pairs = count_visible_pairs(queries_of_element(args, b), keys_of_element(args, b),
                                             args.options.causal, args.options.window);
    sum += operations_of(args, stacked_rows(args, b), pairs);
  }
  return sum;
}

/// Returns the thread count that gives each thread at least 2^19 operations.
int useful_threads(double operations, int available) {
  constexpr double of_each = 1 << 19;
  return static_cast<int>(std::clamp(operations / of_each, 1.0, static_cast<double>(available)));
}

/// Returns the work of the blocks of rows, each of which transposes its queries and converts the
/// keys and values it sees.
Work work(const Attention::Args& args, const Context& context) {
  const double operations = typical_operations(args);
  const std::int64_t rows = args.group() * args.typical_queries();
  Work work = cpu::piece_work(
      args.batch() * args.kv_heads() * ceil_div(rows, block_rows), operations / block_rows,
      useful_threads(operations, context.threads()), type_path(args.q.dtype));
  work.operations = operations;
  return work;
}

void run(const Attention::Args& args, Context& context) {
  const int threads = useful_threads(exact_operations(args), context.threads());
  const std::int64_t scratch = scratch_bytes(args);
  const auto size = static_cast<std::int64_t>(args.q.dtype == DType::f64 ? 8 : 4);
  const std::int64_t part_bytes = block_rows * (args.value_width() + 2) * size;
  const KeySplits plan = plan_of(args);
  // [row block][split][row of the block][Dv + 2]
  const std::int64_t partial = plan.splits > 1 ? plan.units(args) * part_bytes : 0;
  const std::int64_t offsets = RowBlocks::offset_count(args) * std::int64_t{sizeof(std::int64_t)};
  auto* const memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * scratch + partial + offsets)));
  std::byte* const parts = memory + threads * scratch;
  const RowBlocks blocks(args, reinterpret_cast<std::int64_t*>(parts + partial));
  Attend* const attend = attend_for(args);
  std::atomic<std::int64_t> next{0};
  const auto ranks = plan.splits > 1 ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    for (std::int64_t unit = next++; unit < plan.units(args); unit = next++) {
      const std::int64_t split = unit % plan.splits;
      const auto [b, g, first_row, rows] = blocks(args, unit / plan.splits);
      const std::int64_t first = first_key_of(args, b, first_row);
      attend(args,
             {.b = b,
              .g = g,
              .first_row = first_row,
              .rows = rows,
              .first_key = std::min(first + split * plan.keys, args.keys()),
              .last_key = std::min(first + (split + 1) * plan.keys, args.keys()),
              .partial = plan.splits > 1 ? parts + unit * part_bytes : nullptr},
             memory + team.rank() * scratch);
    }
    if (plan.splits == 1) return;
    team.wait();
    with_heads(args, [&]<class T, class K>(const Heads<T, K>& p) {
      using Sum = Accumulator<T>;
      const std::int64_t pitch = block_rows * (p.value_width() + 2);
      const cpu::Range mine = team.share(p.kv_heads() * plan.row_blocks * block_rows);
      for (std::int64_t at = mine.begin; at < mine.end; ++at) {
        const std::int64_t number = at / block_rows;
        const auto [b, g, first_row, rows] = blocks(args, number);
        if (at % block_rows >= rows) continue;
        const std::int64_t row = first_row + at % block_rows;
        const auto* const first =
            reinterpret_cast<const Sum*>(parts + number * plan.splits * part_bytes) +
            at % block_rows * (p.value_width() + 2);
        combine(p, b, g * p.group + row % p.group, row / p.group, first, pitch, plan.splits);
      }
    });
  });
}

const Rung<Attention> self{
    {.name = "threads", .step = 40, .after = "simd", .work = work, .run = run}};

}  // namespace
}  // namespace rung
