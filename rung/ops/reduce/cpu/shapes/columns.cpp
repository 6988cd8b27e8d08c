// SPDX-License-Identifier: Apache-2.0
// reduce / columns
//
// Idea     If results are adjacent, vectors span them: eight rows at a time are added to a run of
//          up to 4096 results that stays in L1. Each tile of results is one task; if tiles are few,
//          their rows are divided into chunks.
// Changes  Against blocks: no gathered elements and no reduction across lanes. Eight rows are added
//          pairwise; after 512 rows the run is added to f64, or stored if no rows remain.
// Cost     x is loaded once, in eight streams; 1/8 load and store of the results per load of x.
// Limits   Contiguous results, one thread. Few columns without gaps are folded as fewer, wider
//          rows.
// Source   gemv of a transposed matrix.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/step-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::reduce_cpu::HWY_NAMESPACE {
namespace {

constexpr int streams = 8;                               // rows read in parallel
constexpr std::int64_t rows_per_turn = max_direct_rows;  // then lanes are added to the wide type

/// Adds `rows` rows to total[0 .. columns), which stays in L1. Eight elements, or their squares,
/// are added pairwise (depth three), then to the total.
template <class S, int rows>
HWY_INLINE void take_rows(const typename S::Element* x, std::int64_t stride, std::int64_t columns,
                          typename S::Lane* total, bool first) {
  using V = typename S::V;
  const typename S::D d;
  const auto vector = [&](std::int64_t j, const auto& load) {
    V sum = first ? S::identity() : hn::Load(d, total + j);
    if constexpr (rows == streams && S::fold == Fold::sum) {
      V v[rows];
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) v[r] = load(x + r * stride + j);
#pragma GCC unroll 3
      for (int half = rows / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
        for (int r = 0; r < half; ++r) v[r] = S::join(v[r], v[r + half]);
      }
      sum = S::join(sum, v[0]);
    } else if constexpr (rows == streams && S::fold == Fold::squares) {
      V v[rows / 2];
#pragma GCC unroll 4
      for (int r = 0; r < rows / 2; ++r) {
        const V one = load(x + r * stride + j);
        v[r] = S::take(hn::Mul(one, one), load(x + (r + rows / 2) * stride + j));
      }
      sum = hn::Add(sum, hn::Add(hn::Add(v[0], v[2]), hn::Add(v[1], v[3])));
    } else if constexpr (rows > 1 && S::extreme && S::floating) {
      // Detects NaN, which minimum and maximum instructions would drop, by a sum: it is NaN if any
      // element is. Cancelling infinities also make it NaN, which costs only time. (With a
      // comparison per element instead: 1.2 us for f32 65x129, max.)
      V v[rows];
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) v[r] = load(x + r * stride + j);
      V all = sum;
      V best = sum;
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        all = hn::Add(all, v[r]);
        best = S::take(best, v[r]);
      }
      if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(all)))) {
        best = sum;
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) best = S::take_with_nan(best, v[r]);
      }
      sum = best;
    } else {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sum = S::take_with_nan(sum, load(x + r * stride + j));
    }
    hn::Store(sum, d, total + j);
  };
  std::int64_t j = 0;
  for (; j + S::lanes <= columns; j += S::lanes) {
    vector(j, [](const auto* p) { return S::load(p); });
  }
  if (j < columns) {
    vector(j, [&](const auto* p) { return S::load_some(p, columns - j); });
  }
}

/// Stores totals as results, divided or rooted as requested.
template <class S>
void store_directly(const Columns& c, const typename S::Lane* total) {
  using T = typename S::Element;
  using A = typename S::Lane;
  const typename S::D d;
  const hn::Rebind<T, typename S::D> stored;
  T* y = static_cast<T*>(c.y);
  for (std::int64_t j = 0; j < c.columns; j += S::lanes) {
    auto v = hn::Load(d, total + j);
    if (c.divisor != 0) v = hn::Div(v, hn::Set(d, static_cast<A>(c.divisor)));
    if (c.root) v = hn::Sqrt(v);
    const auto result = [&] {
      if constexpr (std::is_same_v<T, A>) {
        return v;
      } else {
#if HWY_TARGET == HWY_SCALAR
        return hn::Set(stored, static_cast<T>(hn::GetLane(v)));  // its DemoteTo clamps infinity
#else
        return hn::DemoteTo(stored, v);
#endif
      }
    }();
    if (j + S::lanes <= c.columns) {
      hn::StoreU(result, stored, y + j);
    } else {
      hn::BlendedStore(result, hn::FirstN(stored, static_cast<std::size_t>(c.columns - j)), stored,
                       y + j);
    }
  }
}

template <class S>
HWY_NOINLINE void columns_of(const Columns& c) {
  using T = typename S::Element;
  using A = typename S::Lane;
  using W = Wide<T>;
  A* total = static_cast<A*>(c.scratch);
  W* value = static_cast<W*>(c.value);
  W* rest = static_cast<W*>(c.rest);
  for (std::int64_t begin = 0; begin < c.rows; begin += rows_per_turn) {
    const std::int64_t rows = std::min(rows_per_turn, c.rows - begin);
    const T* x = static_cast<const T*>(c.x) + begin * c.stride;
    std::int64_t r = 0;
    for (; r + streams <= rows; r += streams) {
      take_rows<S, streams>(x + r * c.stride, c.stride, c.columns, total, r == 0);
    }
    const auto rest_of = [&]<int count>() {
      if (((rows - r) & count) == 0) return;
      take_rows<S, count>(x + r * c.stride, c.stride, c.columns, total, r == 0);
      r += count;
    };
    rest_of.template operator()<4>();
    rest_of.template operator()<2>();
    rest_of.template operator()<1>();
    if constexpr (std::is_floating_point_v<T>) {
      if (c.y != nullptr) return store_directly<S>(c, total);
    }
    if (c.first && begin == 0) {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        value[j] = static_cast<W>(total[j]);
        rest[j] = 0;
      }
    } else if constexpr (S::fold == Fold::sum && std::is_same_v<T, float>) {
      // f64 keeps what f32 sums would lose: a loop that the compiler vectorizes.
      for (std::int64_t j = 0; j < c.columns; ++j) value[j] += static_cast<double>(total[j]);
    } else {
      for (std::int64_t j = 0; j < c.columns; ++j) {
        combine(S::fold, false, value[j], rest[j], static_cast<W>(total[j]), W{0});
      }
    }
  }
}

/// Finds the row of each column's extreme, with row numbers in lanes as wide as the elements.
template <class S>
HWY_NOINLINE void positions_of(const Columns& c) {
  using T = typename S::Element;
  using W = Wide<T>;
  using Index = hwy::MakeSigned<T>;
  const typename S::D d;
  const hn::ScalableTag<Index> di;
  T* best = static_cast<T*>(c.scratch);
  Index* where = static_cast<Index*>(c.scratch) + columns_at_most;
  W* value = static_cast<W*>(c.value);
  W* rest = static_cast<W*>(c.rest);
  for (std::int64_t begin = 0; begin < c.rows; begin += rows_per_turn) {
    const std::int64_t rows = std::min(rows_per_turn, c.rows - begin);
    const T* x = static_cast<const T*>(c.x) + begin * c.stride;
    for (std::int64_t r0 = 0; r0 < rows; r0 += streams) {
      const std::int64_t r1 = std::min(r0 + streams, rows);
      for (std::int64_t j = 0; j < c.columns; j += S::lanes) {
        const std::int64_t count = std::min(S::lanes, c.columns - j);
        const auto load = [&](std::int64_t r) {
          const T* p = x + r * c.stride + j;
          return count == S::lanes ? S::load(p) : S::load_some(p, count);
        };
        auto least = r0 == 0 ? load(0) : hn::Load(d, best + j);
        auto row = r0 == 0 ? hn::Zero(di) : hn::Load(di, where + j);
        for (std::int64_t r = r0 == 0 ? 1 : r0; r < r1; ++r) {
          const auto v = load(r);
          const auto better = S::wins(v, least);
          least = hn::IfThenElse(better, v, least);
          row = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, static_cast<Index>(r)), row);
        }
        hn::Store(least, d, best + j);
        hn::Store(row, di, where + j);
      }
    }
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const W position = static_cast<W>(c.row0 + begin + where[j]);
      if (c.first && begin == 0) {
        value[j] = static_cast<W>(best[j]);
        rest[j] = position;
      } else {
        combine(S::fold, true, value[j], rest[j], static_cast<W>(best[j]), position);
      }
    }
  }
}

template <class T>
void integer_products(const Columns& c) {
  auto* value = static_cast<std::int64_t*>(c.value);
  const T* x = static_cast<const T*>(c.x);
  if (c.first) std::fill_n(value, c.columns, std::int64_t{1});
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      value[j] = reduce_cpu::multiply(value[j], static_cast<std::int64_t>(x[r * c.stride + j]));
    }
  }
}

template <class S>
void extremes_of(const Columns& c) {
  c.arg ? positions_of<S>(c) : columns_of<S>(c);
}

void columns(DType element, Fold fold, const Columns& c) {
  visit<float, double, std::int32_t, std::int64_t>(element, [&]<class T>() HWY_ATTR {
    if (fold == Fold::least) return extremes_of<Step<T, Fold::least, T>>(c);
    if (fold == Fold::greatest) return extremes_of<Step<T, Fold::greatest, T>>(c);
    if constexpr (std::is_integral_v<T>) {
      if (fold == Fold::product) return integer_products<T>(c);
      columns_of<Step<T, Fold::sum, std::int64_t>>(c);
    } else {
      if (fold == Fold::product) return columns_of<Step<T, Fold::product, T>>(c);
      // Squares are accumulated in f64, which avoids a second pass for columns that overflow.
      if (fold == Fold::squares) return columns_of<Step<T, Fold::squares, double>>(c);
      columns_of<Step<T, Fold::sum, T>>(c);
    }
  });
}

}  // namespace
}  // namespace rung::reduce_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(columns);
}  // namespace

void fold_columns(DType element, Fold fold, const Columns& c) {
  HWY_DYNAMIC_DISPATCH(columns)(element, fold, c);
}

namespace {

constexpr std::int64_t max_tasks = 64;           // keeps the pairs of all tasks within 4 MiB
constexpr std::int64_t task_elements = 1 << 16;  // minimum elements per task if rows are divided
constexpr std::int64_t row_multiple = 512;       // rows that the kernel adds before it widens
constexpr std::int64_t gathered_rows = 64;       // rows of converted types: 64 KiB of f32
constexpr std::int64_t gathered_columns = 256;
constexpr std::int64_t folded_columns = 1024;    // target width of grouped narrow columns
constexpr std::int64_t least_grouped_rows = 16;  // minimum rows after grouping

/// Tasks of a column reduction, indexed [outer kept index][tile][chunk of rows].
struct ColumnPlan {
  std::int64_t outer = 1;    // kept results before the innermost axis
  std::int64_t columns = 1;  // extent of the innermost kept axis
  std::int64_t groups = 1;   // rows of x that form one row of columns * groups elements
  std::int64_t tile = 1;
  std::int64_t tiles = 1;
  std::int64_t rows = 1;      // innermost reduced axis, in groups
  std::int64_t odd_rows = 0;  // rows that fill no group
  std::int64_t stride = 0;
  std::int64_t blocks = 1;  // reduced indices before the innermost axis
  std::int64_t chunk = 1;
  std::int64_t chunks = 1;
  bool gathers = false;

  explicit ColumnPlan(const Reduce::Args& args) {
    const int kept_last = args.kept.rank - 1;
    columns = args.kept.shape[kept_last];
    outer = args.kept.size() / columns;
    const int last = args.terms.rank - 1;
    rows = last < 0 ? args.terms.size() : args.terms.shape[last];
    stride = last < 0 ? 0 : args.terms.strides[0][last];
    blocks = rows == 0 ? 0 : args.terms.size() / rows;
    gathers = cpu::gathered_type(args.x.dtype) != args.x.dtype;
    // Rows without gaps, too narrow for vectors: several rows form a wider one.
    if (stride == columns && columns < folded_columns / 4 && !args.is_arg()) {
      groups = std::clamp<std::int64_t>(rows / least_grouped_rows, 1, folded_columns / columns);
      odd_rows = rows % groups;
      rows /= groups;
      stride *= groups;
    }
    const std::int64_t width = columns * groups;
    // Results stay in L1 beside the rows; f64 and squares take 8 bytes each.
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

/// Buffers of one thread.
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
  ColumnEngine(const Reduce::Args& args, const ColumnPlan& plan, std::byte* memory)
      : args_(args),
        plan_(plan),
        fold_(fold_of(args.operation)),
        size_(static_cast<std::int64_t>(size_of(args.x.dtype))),
        buffers_(memory) {}

  /// Returns whether the kernel stores a tile's results itself, in the type of the lanes.
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

  /// Folds one task into value[0 .. tile) and rest, which follows in value[tile .. 2 tile).
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
      // Rows that fill no group come after the last full group.
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

  /// Combines the groups of a tile and stores its results.
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
  struct ColumnTile {
    const std::byte* x;
    std::int64_t columns;
  };
  [[nodiscard]] ColumnTile tile_of(std::int64_t tile) const {
    const std::int64_t begin = tile % plan_.tiles * plan_.tile;
    const std::int64_t base = args_.kept.template offset<0>(tile / plan_.tiles * plan_.columns);
    return {static_cast<const std::byte*>(args_.x.data) + (base + begin) * size_,
            std::min(plan_.tile, plan_.columns * plan_.groups - begin)};
  }

  void fold(const std::byte* x, std::int64_t stride, std::int64_t rows, std::int64_t columns,
            W* value, W* rest, bool first, std::int64_t row0) {
    const DType folded = cpu::gathered_type(args_.x.dtype);
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
          cpu::gather(args_.x.dtype, x + ((r + i) * stride + j) * size_, 1, some,
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
  const ColumnPlan& plan_;
  Fold fold_;
  std::int64_t size_;
  Buffers buffers_;
};

template <class W>
void reduce_tiles(const Reduce::Args& args, Context& context, int threads) {
  const ColumnPlan plan(args);
  // Pairs of chunks are kept only if threads share a tile; a single thread combines them
  // immediately, in the same order.
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

bool has_columns(const Reduce::Args& args) {
  const int kept = args.kept.rank - 1;
  const int last = args.terms.rank - 1;
  if (args.has_segments() || kept < 0 || args.kept.shape[kept] < 2) return false;
  if (args.kept.strides[0][kept] != 1 || args.terms.size() < 1) return false;
  if (last >= 0 && args.terms.strides[0][last] == 1) return false;
  // An index search among a few columns would leave most lanes idle.
  if (args.is_arg() && args.kept.shape[kept] < 8) return false;
  return true;
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
    return false;  // folded as fewer, wider rows
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
  with_wide(args.x.dtype, [&]<class W>() { reduce_tiles<W>(args, context, threads); });
}

namespace {

Support supports(const Reduce::Args& args, const Context&) {
  return has_columns(args) ? supported
                           : unsupported("contiguous results, with reduced axes of larger strides");
}

Work work(const Reduce::Args& args, const Context&) { return row_facts(args, 1); }

void run(const Reduce::Args& args, Context& context) { reduce_columns(args, context, 1); }

const Rung<Reduce> self{
    {.name = "columns", .after = "blocks", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::reduce_cpu
#endif
