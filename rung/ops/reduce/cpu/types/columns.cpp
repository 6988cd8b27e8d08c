// SPDX-License-Identifier: Apache-2.0
// reduce / columns
//
// Idea     where results are adjacent, vectors run across them: eight rows at a time are taken
//          into a run of up to 4096 results that stays in L1.
// Changes  against the rungs along rows: no gathering of elements per row apart, no putting
//          together of lanes. A sum of 8 rows is made in pairs, and after 512 rows the run goes
//          into f64; where there are no more, it is the result.
// Cost     x once, in eight streams; 1/8 load and store of the results for each load of x.
// Limits   contiguous results, one thread. Few columns without gaps are taken as fewer, wider rows.
// Tried    asking for the first lines of each row's next page, which helps along rows: 35 GB/s
//          instead of 41 (4096 x 4096 f32, one thread of a 2-core Zen 5 vCPU); each line 512 bytes
//          to 2 KiB ahead 36, four rows at a time 36, two 30, one by one with pages ahead 37.
// Source   gemv of a transposed matrix.
#include <array>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/reduce/cpu/detail/engine.hpp"
#include "rung/ops/reduce/cpu/detail/finish.hpp"
#include "rung/ops/reduce/cpu/detail/kernels.hpp"

// The engine down columns: tiles of contiguous results, whose rows are cut into chunks where there
// are few tiles.
namespace rung::reduce_cpu {
namespace {

constexpr std::int64_t max_tasks = 64;           // pairs of all tasks then stay within 4 MiB
constexpr std::int64_t task_elements = 1 << 16;  // at least, where rows are cut
constexpr std::int64_t row_multiple = 512;       // what the kernel adds up before it widens
constexpr std::int64_t gathered_rows = 64;       // of converted types: 64 KiB of f32
constexpr std::int64_t gathered_columns = 256;
constexpr std::int64_t folded_columns = 1024;    // what narrow columns are widened to
constexpr std::int64_t least_grouped_rows = 16;  // of those that are left

/// The tasks of a call: [outer kept index][tile][chunk of rows].
struct Plan {
  std::int64_t outer = 1;    // kept results before the innermost axis
  std::int64_t columns = 1;  // innermost kept axis ...
  std::int64_t groups = 1;   // ... times the rows that are laid out contiguously
  std::int64_t tile = 1;
  std::int64_t tiles = 1;
  std::int64_t rows = 1;      // innermost reduced axis, in groups
  std::int64_t odd_rows = 0;  // rows that fill no group
  std::int64_t stride = 0;
  std::int64_t blocks = 1;  // reduced indices before the innermost axis
  std::int64_t chunk = 1;
  std::int64_t chunks = 1;
  bool gathers = false;

  explicit Plan(const Reduce::Args& args) {
    const int kept_last = args.kept.rank - 1;
    columns = args.kept.shape[kept_last];
    outer = args.kept.size() / columns;
    const int last = args.terms.rank - 1;
    rows = last < 0 ? args.terms.size() : args.terms.shape[last];
    stride = last < 0 ? 0 : args.terms.strides[0][last];
    blocks = rows == 0 ? 0 : args.terms.size() / rows;
    gathers = folded_as(args.x.dtype) != args.x.dtype;
    // Rows without gaps, too narrow for vectors: several of them are one row of more columns.
    if (stride == columns && columns < folded_columns / 4 && !args.is_arg()) {
      groups = std::clamp<std::int64_t>(rows / least_grouped_rows, 1, folded_columns / columns);
      odd_rows = rows % groups;
      rows /= groups;
      stride *= groups;
    }
    const std::int64_t width = columns * groups;
    // Results, in lanes of 8 bytes where these are f64 or squares, stay in L1 beside the rows.
    const bool wide = size_of(args.x.dtype) == 8 || args.operation == Reduction::norm;
    tile = std::min(width, gathers ? gathered_columns * 4
                           : wide  ? columns_at_most / 4
                                   : columns_at_most);
    if (groups > 1) tile = width;
    tiles = ceil_div(width, tile);
    const std::int64_t independent = std::max<std::int64_t>(outer * tiles, 1);
    chunk = std::max(rows, std::int64_t{1});
    if (independent < max_tasks && blocks == 1) {
      const std::int64_t least =
          std::max(ceil_div(task_elements, tile), ceil_div(rows, max_tasks / independent));
      chunk = round_up(std::max<std::int64_t>(least, 1), row_multiple);
    }
    chunks = std::max<std::int64_t>(ceil_div(rows, chunk), 1);
  }
  [[nodiscard]] std::int64_t tasks() const { return outer * tiles * chunks; }
};

/// A thread's memory.
struct Buffers {
  static constexpr std::int64_t scratch_bytes = 16 * columns_at_most;
  static constexpr std::int64_t gather_bytes = gathered_rows * gathered_columns * 8;
  static constexpr std::int64_t pair_bytes = 16 * columns_at_most;
  static constexpr std::int64_t bytes = scratch_bytes + gather_bytes + pair_bytes;
  std::byte* scratch;
  std::byte* gather;
  std::byte* pairs;
  explicit Buffers(std::byte* memory)
      : scratch(memory), gather(memory + scratch_bytes), pairs(gather + gather_bytes) {}
};

template <class W>
class ColumnEngine {
 public:
  ColumnEngine(const Reduce::Args& args, const Plan& plan, std::byte* memory)
      : args_(args),
        plan_(plan),
        fold_(fold_of(args.operation)),
        size_(static_cast<std::int64_t>(size_of(args.x.dtype))),
        buffers_(memory) {}

  /// Whether a tile's results follow from its rows at once, in the lanes' own type.
  [[nodiscard]] bool is_direct() const {
    const bool floating = args_.x.dtype == DType::f32 || args_.x.dtype == DType::f64;
    return floating && args_.y.dtype == args_.x.dtype && !args_.is_arg() && plan_.chunks == 1 &&
           plan_.groups == 1 && plan_.blocks == 1 && plan_.rows <= max_direct_rows &&
           args_.kept.strides[1][args_.kept.rank - 1] == 1;
  }
  void make_tile(std::int64_t tile) {
    const auto [x, columns] = tile_of(tile);
    const std::int64_t at = args_.kept.template offset<1>(tile / plan_.tiles * plan_.columns) +
                            tile % plan_.tiles * plan_.tile;
    const bool mean = args_.operation == Reduction::mean;
    fold_columns(args_.x.dtype, fold_,
                 {.x = x + args_.terms.offset(0) * size_,
                  .stride = plan_.stride,
                  .rows = plan_.rows,
                  .columns = columns,
                  .scratch = buffers_.scratch,
                  .value = nullptr,
                  .rest = nullptr,
                  .y = static_cast<std::byte*>(args_.y.data) + at * size_,
                  .divisor = mean ? static_cast<double>(plan_.rows) : 0,
                  .root = args_.operation == Reduction::norm});
  }

  /// One task's pairs: value[0 .. tile), rest behind them.
  void fold_task(std::int64_t task, W* value) {
    const std::int64_t chunk = task % plan_.chunks;
    const auto [x, columns] = tile_of(task / plan_.chunks);
    const std::int64_t begin = chunk * plan_.chunk;
    const std::int64_t rows = std::min(plan_.chunk, plan_.rows - begin);
    W* rest = value + plan_.tile;
    bool first = true;
    for (std::int64_t block = 0; block < plan_.blocks; ++block) {
      const std::int64_t start = block * (plan_.rows * plan_.groups + plan_.odd_rows);
      const std::byte* const base = x + args_.terms.offset(start) * size_;
      fold(base + begin * plan_.stride * size_, plan_.stride, rows, columns, value, rest, first,
           block * plan_.rows + begin);
      first = false;
      // Rows that fill no group follow the last of those that do.
      if (plan_.odd_rows > 0 && chunk == plan_.chunks - 1) {
        fold(base + plan_.rows * plan_.stride * size_, plan_.stride, 1,
             plan_.odd_rows * plan_.columns, value, rest, first, 0);
      }
    }
    if (plan_.blocks == 0) {  // nothing to reduce
      std::fill_n(value, columns, identity<W>(fold_));
      std::fill_n(rest, columns, args_.is_arg() ? W{-1} : W{0});
    }
  }

  void join(W* value, const W* later) const {
    for (std::int64_t j = 0; j < plan_.tile; ++j) {
      combine(fold_, args_.is_arg(), value[j], value[plan_.tile + j], later[j],
              later[plan_.tile + j]);
    }
  }

  /// Puts groups together and stores the results of a tile.
  void finish_tile(std::int64_t tile, W* value) const {
    W* rest = value + plan_.tile;
    const std::int64_t begin = tile % plan_.tiles * plan_.tile;
    const std::int64_t columns = std::min(plan_.tile, plan_.columns - begin);
    for (std::int64_t group = 1; group < plan_.groups; ++group) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::int64_t from = group * plan_.columns + j;
        combine(fold_, false, value[j], rest[j], value[from], rest[from]);
      }
    }
    const std::int64_t at = args_.kept.template offset<1>(tile / plan_.tiles * plan_.columns);
    const std::int64_t step = args_.kept.strides[1][args_.kept.rank - 1];
    store_results(args_, at + begin * step, step, columns, value, rest, args_.terms.size());
  }

  [[nodiscard]] W* pairs() const { return reinterpret_cast<W*>(buffers_.pairs); }

 private:
  struct Tile {
    const std::byte* x;
    std::int64_t columns;
  };
  [[nodiscard]] Tile tile_of(std::int64_t tile) const {
    const std::int64_t begin = tile % plan_.tiles * plan_.tile;
    const std::int64_t base = args_.kept.template offset<0>(tile / plan_.tiles * plan_.columns);
    return {static_cast<const std::byte*>(args_.x.data) + (base + begin) * size_,
            std::min(plan_.tile, plan_.columns * plan_.groups - begin)};
  }

  void fold(const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
            W* value, W* rest, bool first, std::int64_t row0) {
    const DType folded = folded_as(args_.x.dtype);
    Columns c{.x = x,
              .stride = stride,
              .rows = rows,
              .columns = columns,
              .scratch = buffers_.scratch,
              .value = value,
              .rest = rest,
              .first = first,
              .arg = args_.is_arg(),
              .row0 = row0};
    if (!plan_.gathers) return fold_columns(folded, fold_, c);
    const auto size = static_cast<std::int64_t>(size_of(folded));
    for (std::int64_t j = 0; j < columns; j += gathered_columns) {
      const std::int64_t some = std::min(gathered_columns, columns - j);
      for (std::int64_t r = 0; r < rows; r += gathered_rows) {
        const std::int64_t several = std::min(gathered_rows, rows - r);
        for (std::int64_t i = 0; i < several; ++i) {
          gather(args_.x.dtype, x + ((r + i) * stride + j) * size_, 1, some,
                 buffers_.gather + i * gathered_columns * size);
        }
        c.x = buffers_.gather;
        c.stride = gathered_columns;
        c.rows = several;
        c.columns = some;
        c.value = value + j;
        c.rest = rest + j;
        c.first = first && r == 0;
        c.row0 = row0 + r;
        fold_columns(folded, fold_, c);
      }
    }
  }

  const Reduce::Args& args_;
  const Plan& plan_;
  Fold fold_;
  std::int64_t size_;
  Buffers buffers_;
};

template <class W>
void run(const Reduce::Args& args, Context& context, int threads) {
  const Plan plan(args);
  // Chunks are kept only where threads share a tile; one thread joins them as it goes, in the same
  // order.
  const bool split = plan.chunks > 1 && threads > 1;
  const std::int64_t pair_bytes = 2 * plan.tile * static_cast<std::int64_t>(sizeof(W));
  const std::int64_t kept_bytes = split             ? plan.tasks() * pair_bytes
                                  : plan.chunks > 1 ? threads * pair_bytes
                                                    : 0;
  auto* memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * Buffers::bytes + kept_bytes)));
  auto* kept = reinterpret_cast<W*>(memory + threads * Buffers::bytes);
  const std::int64_t tiles = plan.outer * plan.tiles;
  const auto ranks = split ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    ColumnEngine<W> engine(args, plan, memory + team.rank() * Buffers::bytes);
    if (split) {
      const cpu::Range tasks = team.share(plan.tasks());
      for (std::int64_t task = tasks.begin; task < tasks.end; ++task) {
        engine.fold_task(task, kept + task * 2 * plan.tile);
      }
      team.wait();
    }
    const cpu::Range share = team.share(tiles);
    if (engine.is_direct()) {
      for (std::int64_t tile = share.begin; tile < share.end; ++tile) engine.make_tile(tile);
      return;
    }
    for (std::int64_t tile = share.begin; tile < share.end; ++tile) {
      W* value = split ? kept + tile * plan.chunks * 2 * plan.tile : engine.pairs();
      for (std::int64_t c = 0; c < plan.chunks; ++c) {
        const std::int64_t task = tile * plan.chunks + c;
        W* later = split ? kept + task * 2 * plan.tile : kept + team.rank() * 2 * plan.tile;
        if (c == 0) {
          if (!split) engine.fold_task(task, value);
          continue;
        }
        if (!split) engine.fold_task(task, later);
        engine.join(value, later);
      }
      engine.finish_tile(tile, value);
    }
  });
}

}  // namespace

Walk walk_of(const Reduce::Args& args) {
  const int kept = args.kept.rank - 1;
  const int last = args.terms.rank - 1;
  if (args.has_segments() || kept < 0 || args.kept.shape[kept] < 2) return Walk::rows;
  if (args.kept.strides[0][kept] != 1 || args.terms.size() < 1) return Walk::rows;
  if (last >= 0 && args.terms.strides[0][last] == 1) return Walk::rows;
  // A search among a few columns would leave most lanes idle.
  if (args.is_arg() && args.kept.shape[kept] < 8) return Walk::rows;
  return Walk::columns;
}

int useful_threads(const Reduce::Args& args, const Context& context) {
  constexpr std::int64_t min_bytes = 512 << 10;
  return bytes_of(args) < min_bytes ? 1 : context.threads();
}

bool reduce_one_tile(const Reduce::Args& args, Context& context) {
  const DType dtype = args.x.dtype;
  if (args.kept.rank != 1 || args.terms.rank > 1 || args.is_arg() || args.has_segments() ||
      (dtype != DType::f32 && dtype != DType::f64) || args.y.dtype != dtype) {
    return false;
  }
  const std::int64_t columns = args.kept.size(), rows = args.terms.size();
  const std::int64_t stride = args.terms.rank == 0 ? 0 : args.terms.strides[0][0];
  constexpr std::int64_t one_threads_elements = 1 << 16;
  if (args.kept.strides[0][0] != 1 || args.kept.strides[1][0] != 1 || stride == 1 || rows < 1 ||
      columns > columns_at_most || rows > max_direct_rows ||
      rows * columns > one_threads_elements) {
    return false;
  }
  if (stride == columns && rows >= 2 * least_grouped_rows && columns < folded_columns / 4) {
    return false;  // taken as fewer, wider rows
  }
  fold_columns(dtype, fold_of(args.operation),
               {.x = args.x.data,
                .stride = stride,
                .rows = rows,
                .columns = columns,
                .scratch = context.workspace(Buffers::scratch_bytes),
                .value = nullptr,
                .rest = nullptr,
                .y = args.y.data,
                .divisor = args.operation == Reduction::mean ? static_cast<double>(rows) : 0,
                .root = args.operation == Reduction::norm});
  return true;
}

void reduce_columns(const Reduce::Args& args, Context& context, int threads) {
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

Support supports(const Reduce::Args& args, const Context&) {
  return walk_of(args) == Walk::columns
             ? supported
             : unsupported("contiguous results, with reduced axes of larger strides");
}

double estimate(const Reduce::Args& args, const Context&) {
  return 2e-7 + Reduce::cost(args).bytes / 35e9;
}

void run(const Reduce::Args& args, Context& context) { reduce_columns(args, context, 1); }

const Rung<Reduce> self{
    {.name = "columns", .after = "simd", .supports = supports, .estimate = estimate, .run = run}};
}  // namespace
}  // namespace rung
