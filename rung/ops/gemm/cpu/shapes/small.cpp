// SPDX-License-Identifier: Apache-2.0
// gemm / small
//
// Idea     A that fits in L2 is read in place: packing would only copy it within L2. B is read in
//          place too while a strip of it stays in L1; otherwise each thread packs its strips one by
//          one, right before using them.
// Changes  against packed_simd: A is never copied, B at most once, into 128 bytes x k that stay in
//          L1 or L2; no barriers. Threads share whole tiles of rows, so results do not depend on
//          their number. If all of B stays in L1, tiles go along rows of C; up to twelve last
//          columns are vectorized along k (slivers), four at a time.
// Cost     A is read from L2 once per 32 columns: 56 bytes per 448 multiply-adds.
// Limits   A larger than L2, or rows a multiple of 4 KiB apart: 14 lines of one set exceed the 12
//          ways of L1 (0.9 of packed_simd at 1024 on a 2-core Zen 5 vCPU; 1.03 at 512, 1.1 at 256).
// Source   BLIS's "sup" path; OpenBLAS's small-matrix kernels.
#include "rung/cpu/foreach_target.hpp"

#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"
#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace {
#if HWY_TARGET != HWY_SCALAR
constexpr int sliver_vectors = 16 / lanes<float>();           // vectors that hold four blocks
constexpr int most_rows = narrow_tile_rows / sliver_vectors;  // sliver_rows()

using BlockTag = hn::CappedTag<float, 4>;
using BlockVec = hn::Vec<BlockTag>;
using Sliver = hn::Vec<Full<float>>;

/// Joins blocks to a vector.
template <class D>
HWY_INLINE hn::Vec<D> join(D d, const BlockVec* block) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return *block;
  } else {
    const hn::Half<D> half;
    constexpr int blocks = hn::MaxLanes(D()) / 8;
    return hn::Combine(d, join(half, block + blocks), join(half, block));
  }
}
template <class D>
HWY_INLINE void split([[maybe_unused]] D d, hn::Vec<D> v, BlockVec* block) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    *block = v;
  } else {
    const hn::Half<D> half;
    constexpr int blocks = hn::MaxLanes(D()) / 8;
    split(half, hn::LowerHalf(half, v), block);
    split(half, hn::UpperHalf(half, v), block + blocks);
  }
}
template <class D>
HWY_INLINE hn::Vec<D> repeat(D d, BlockVec block) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return block;
  } else {
    const auto v = repeat(hn::Half<D>(), block);
    return hn::Combine(d, v, v);
  }
}

/// Transposes a 4 x 4 matrix, one row per block.
template <class V, int vectors>
HWY_INLINE void transpose(V (&m)[vectors]) {
  const Full<float> d;
  if constexpr (vectors == 4) {
    const hn::Repartition<double, Full<float>> pairs;
    const auto low = [&](V x, V y)
                         HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveLower(d, x, y)); };
    const auto high = [&](V x, V y)
                          HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveUpper(d, x, y)); };
    const auto columns_01 = low(m[0], m[1]);  // of rows 0 and 1: 00 10 01 11
    const auto columns_23 = high(m[0], m[1]);
    const auto more_01 = low(m[2], m[3]);
    const auto more_23 = high(m[2], m[3]);
    m[0] = hn::BitCast(d, hn::InterleaveLower(pairs, columns_01, more_01));
    m[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, columns_01, more_01));
    m[2] = hn::BitCast(d, hn::InterleaveLower(pairs, columns_23, more_23));
    m[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, columns_23, more_23));
  } else if constexpr (vectors == 2) {
    // Interleaves rows 0 | 1 and 2 | 3, (00 20 01 21 | 10 30 11 31), and likewise columns 2 and 3.
    HWY_ALIGN constexpr std::uint32_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const auto columns = hn::SetTableIndices(d, order);
    const V low = hn::InterleaveLower(d, m[0], m[1]);
    const V high = hn::InterleaveUpper(d, m[0], m[1]);
    m[0] = hn::TableLookupLanes(low, columns);
    m[1] = hn::TableLookupLanes(high, columns);
  } else {
    static_assert(vectors == 1);
    HWY_ALIGN constexpr std::uint32_t order[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                   2, 6, 10, 14, 3, 7, 11, 15};
    m[0] = hn::TableLookupLanes(m[0], hn::SetTableIndices(d, order));
  }
}

/// Reduces each 128-bit block of four vectors: lane i of a result block is the sum of the same
/// block of v_i.
HWY_INLINE Sliver sum_blocks(Sliver v0, Sliver v1, Sliver v2, Sliver v3) {
  const Full<float> d;
  const hn::Repartition<double, Full<float>> pairs;
  const auto two = [&](Sliver x, Sliver y) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y)));
  };
  const auto low = two(v0, v1);
  const auto high = two(v2, v3);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
}

/// Computes a tile of the last columns of C: `rows` rows, at most four columns of f32.
///
/// Vectors along columns would leave three quarters of their lanes idle, at n = 100 a tenth of all
/// arithmetic. Slivers are vectorized along k instead: each 128-bit block of B's vectors holds four
/// k of one column, and one load broadcasts the same four k of a row of A to all blocks; a final
/// reduction sums each block. Rows of A must be contiguous, and four rows of B are transposed per
/// four k, once for all rows of the tile.
template <int rows>
void sliver(const TileArgs<float>& t) {
  const Full<float> d;
  const BlockTag block;
  const auto columns = hn::FirstN(block, static_cast<std::size_t>(t.columns));
  // Rounded up, because rows are reduced in fours.
  Sliver acc[(rows + 3) / 4 * 4][sliver_vectors];
#pragma GCC unroll 32
  for (auto& row : acc) {
    for (auto& v : row) v = hn::Zero(d);
  }
  const float* b = t.b;
  const float* a = t.a;
  // Accumulates four k; at the end fewer, without reading beyond k.
  const auto advance = [&](int k, auto load) HWY_ATTR {
    BlockVec b_row[4];
    for (int p = 0; p < 4; ++p) {
      b_row[p] = p < k ? hn::MaskedLoad(columns, block, b + p * t.b_row) : hn::Zero(block);
    }
    Sliver b_column[sliver_vectors];
    for (int v = 0; v < sliver_vectors; ++v) b_column[v] = join(d, b_row + v * 4 / sliver_vectors);
    transpose(b_column);
    const float* x = a;
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
      const Sliver element = load(x + i % 3 * t.a_row);
      for (int v = 0; v < sliver_vectors; ++v) {
        acc[i][v] = hn::MulAdd(element, b_column[v], acc[i][v]);
      }
      if (i % 3 == 2) {
        x += 3 * t.a_row;
        asm("" : "+r"(x));  // one moving pointer: see update()
      }
    }
    a += 4;
    b += 4 * t.b_row;
  };
  std::int64_t k = t.k;
  for (; k >= 4; k -= 4) {
    advance(4, [&](const float* x) HWY_ATTR { return hn::LoadDup128(d, x); });
  }
  if (k > 0) {
    const auto left = hn::FirstN(block, static_cast<std::size_t>(k));
    advance(static_cast<int>(k),
            [&](const float* x) HWY_ATTR { return repeat(d, hn::MaskedLoad(left, block, x)); });
  }
  // Sums, one row of C per block.
  BlockVec sums[(rows + 3) / 4 * 4];
  const BlockVec alpha = hn::Set(block, t.alpha);
#pragma GCC unroll 8
  for (int i = 0; i < rows; i += 4) {
    Sliver four[sliver_vectors];  // one column per block
    for (int v = 0; v < sliver_vectors; ++v) {
      four[v] = sum_blocks(acc[i][v], acc[i + 1][v], acc[i + 2][v], acc[i + 3][v]);
    }
    transpose(four);
    for (int v = 0; v < sliver_vectors; ++v) {
      split(d, hn::Mul(four[v], repeat(d, alpha)), sums + i + v * 4 / sliver_vectors);
    }
  }
  float* c = t.c;
  const std::int64_t c_row = t.c_row;
  if (t.beta != 0) {
    const BlockVec beta = hn::Set(block, t.beta);
    for (int i = 0; i < rows; ++i) {
      sums[i] = hn::MulAdd(hn::MaskedLoad(columns, block, c + i * c_row), beta, sums[i]);
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i, c += c_row) hn::BlendedStore(sums[i], columns, block, c);
}
#endif

/// Returns the sliver kernels, indexed by rows - 1, up to sliver_rows().
inline TileFunction<float>* const* slivers() {
#if HWY_TARGET == HWY_SCALAR
  return nullptr;
#else
  return table_by_rows<TileFunction<float>, most_rows>([]<int rows>() { return &sliver<rows>; });
#endif
}

}  // namespace
}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
namespace {
HWY_EXPORT(slivers);
using cpu::Range;
using cpu::Team;

/// Share of C's rows, in whole tiles. Tile heights depend on C alone, so results do not depend on
/// the number of threads.
struct RowShare {
  int part = 0;
  int parts = 1;

  /// Calls f(first, count) for each tile of the share, of at most `max_height` rows. Heights are
  /// nearly equal: a last tile of two rows would not hide its FMA latency. Returns the rows of the
  /// share.
  template <class F>
  Range for_tiles(std::int64_t rows, std::int64_t max_height, F&& f) const {
    const std::int64_t height = ceil_div(rows, ceil_div(rows, max_height));
    const Range tiles = cpu::part_of(ceil_div(rows, height), part, parts);
    for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      f(tile * height, std::min(height, rows - tile * height));
    }
    return {std::min(tiles.begin * height, rows), std::min(tiles.end * height, rows)};
  }
};

/// Computes a share of C's rows times columns `strips` of strips. `packed` has room for the copies
/// of B that copies_of() selects.
template <class T>
void multiply(const Sums<T>& sums, const RowShare& share, Range strips, T* packed) {
  const RowMajorProduct& call = sums.call;
  const Kernels<T>& ks = sums.kernels;
  const Copies copies = copies_of(call, ks);
  const std::int64_t width = ks.tile_columns();
  TileArgs<T> t{};
  t.k = call.k;
  t.a_row = call.a.row;
  t.a_column = call.a.column;
  t.b_row = call.b.row;
  t.c_row = sums.row;
  t.alpha = static_cast<T>(call.alpha);
  t.beta = sums.beta(true);
  const Source b_source = copies == Copies::none ? Source::strided : Source::packed;
  const auto columns_at = [&](std::int64_t j) { return std::min(call.n - j, width); };
  const auto in_place = [&](std::int64_t j) {
    return static_cast<const T*>(at(call.b, call.in, sums.batch, 0, j));
  };
  // Computes a tile of `count` rows from i on and the strip from column j on, whose B is at t.b.
  const auto tile = [&](std::int64_t i, std::int64_t count, std::int64_t j) {
    t.columns = static_cast<int>(columns_at(j));
    t.a = static_cast<const T*>(at(call.a, call.in, sums.batch, i, 0));
    t.c = sums.at(i, j);
    ks.tile(Source::strided, b_source, strip_width(ks, t.columns) / ks.lanes, count)(t);
  };
  // Computes columns [j, n) by slivers, each of which reads A again.
  const auto by_sliver = [&](std::int64_t i, std::int64_t count, std::int64_t j) {
    if constexpr (std::is_same_v<T, float>) {
      t.a = static_cast<const T*>(at(call.a, call.in, sums.batch, i, 0));
      for (; j < call.n; j += sliver_columns(ks)) {
        t.columns = static_cast<int>(std::min<std::int64_t>(call.n - j, sliver_columns(ks)));
        t.b = in_place(j);
        t.c = sums.at(i, j);
        HWY_DYNAMIC_DISPATCH(slivers)()[count - 1](t);
      }
    }
  };
  const bool last_by_slivers = by_slivers(call, ks);
  if (copies != Copies::strip && b_stays_near(call, ks) && call.n > width) {
    // All strips stay in L1: tiles go along rows of C, whose lines are then written once.
    const std::int64_t first = strips.begin * width;
    if (copies == Copies::whole) {
      const std::int64_t columns = std::min(strips.end * width, call.n) - first;
      pack_b(call, ks, sums.batch, 0, call.k, first, columns, packed);
    }
    share.for_tiles(call.m, ks.tile_rows, [&](std::int64_t i, std::int64_t count) {
      for (std::int64_t s = strips.begin; s < strips.end; ++s) {
        const std::int64_t j = s * width;
        t.b = copies == Copies::whole ? packed + (j - first) * call.k : in_place(j);
        tile(i, count, j);
      }
      sums.finish(i, count, first, std::min(strips.end * width, call.n) - first);
    });
    return;
  }
  for (std::int64_t s = strips.begin; s < strips.end; ++s) {
    const std::int64_t j = s * width;
    const std::int64_t columns = columns_at(j);
    Range rows;
    if (last_by_slivers && j + width >= call.n) {
      rows = share.for_tiles(call.m, sliver_rows(ks),
                             [&](std::int64_t i, std::int64_t count) { by_sliver(i, count, j); });
    } else {
      const bool narrow = strip_width(ks, columns) == ks.lanes;
      t.b = in_place(j);
      if (copies != Copies::none) {
        pack_b(call, ks, sums.batch, 0, call.k, j, columns, packed);
        t.b = packed;
      }
      rows = share.for_tiles(call.m, narrow ? ks.narrow_tile_rows : ks.tile_rows,
                             [&](std::int64_t i, std::int64_t count) { tile(i, count, j); });
    }
    sums.finish(rows.begin, rows.size(), j, columns);
  }
}

/// Returns the elements of a thread's copy of B.
template <class T>
std::int64_t copy_size_of(const RowMajorProduct& call, const Kernels<T>& ks, Copies copies) {
  const std::int64_t strips = copies == Copies::whole ? ceil_div(call.n, ks.tile_columns()) : 1;
  return round_up(call.k * ks.tile_columns() * strips, 1024);
}

template <class T>
int threads_of(const RowMajorProduct& call, const Kernels<T>& ks, Copies copies,
               const Context& context) {
  const int threads = threads_worth(call, context.threads());
  if (copies == Copies::none) return threads;
  constexpr std::int64_t most = 30 << 20;  // bytes: the workspace stays under 32 MiB
  return static_cast<int>(std::min<std::int64_t>(
      threads, most / (copy_size_of(call, ks, copies) * static_cast<std::int64_t>(sizeof(T)))));
}

template <class T>
void small(const RowMajorProduct& call, Context& context) {
  const Kernels<T>& ks = kernels<T>();
  const std::int64_t strips = ceil_div(call.n, ks.tile_columns());
  const Copies copies = copies_of(call, ks);
  const std::int64_t copy_size = copy_size_of(call, ks, copies);
  const int threads = threads_of(call, ks, copies, context);
  T* workspace = nullptr;
  if (copies != Copies::none) {
    workspace = static_cast<T*>(context.workspace(threads * copy_size * sizeof(T)));
  }

  cpu::run_shares(threads, [&](const Team& team) {
    T* packed = workspace + team.rank() * copy_size;
    const bool by_matrix = call.batch >= team.size();
    const Range matrices = by_matrix ? team.share(call.batch) : Range{0, call.batch};
    RowShare my_rows;
    Range my_strips{0, strips};
    if (!by_matrix) {
      // Threads share rows or strips, whichever balances better. With rows, each thread packs all
      // of B, which takes as long as some rows of C. With strips, each thread reads all of A, and
      // adjacent strips falsely share line pairs, which the adjacent-line prefetcher fetches
      // together (EXPERIMENTS.md).
      constexpr std::int64_t rows_of_packing = 16;
      const std::int64_t packing = copies != Copies::none ? rows_of_packing * call.n : 0;
      const std::int64_t tiles = ceil_div(ceil_div(call.m, ks.tile_rows), team.size());
      const std::int64_t row_share = std::min(call.m, tiles * ks.tile_rows) * call.n;
      const std::int64_t strip_share = ceil_div(strips, team.size()) * ks.tile_columns() * call.m;
      const bool by_rows = row_share + packing <= strip_share + strip_share / 16;
      if (by_rows) {
        my_rows = {team.rank(), team.size()};
      } else {
        my_strips = team.share(strips);
      }
    }
    for (std::int64_t batch = matrices.begin; batch < matrices.end; ++batch) {
      multiply(make_sums<T>(call, ks, batch, nullptr, 0), my_rows, my_strips, packed);
    }
  });
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  const RowMajorProduct call = row_major_product(args);
  if (call.in != call.out) return unsupported("takes f32 or f64 throughout");
  if (!call.direct()) return unsupported("takes f32 or f64, and rows or columns of C contiguous");
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  const Copies copies =
      with_sums(call.in, [&]<class T>() { return copies_of(call, kernels<T>()); });
  if (copies == Copies::strip && call.k > 2048) {
    return unsupported("k is more than 2048: a strip of B leaves the L2 cache");
  }
  return supported;
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  return with_sums(call.in, [&]<class T>() -> Work {
    const Kernels<T>& ks = kernels<T>();
    const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
    const double k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
    const double strips = std::ceil(n / ks.tile_columns());
    const double tiles = strips * std::ceil(m / ks.tile_rows);
    const Copies copies = copies_of(call, ks);
    const double slivers = by_slivers(call, ks) ? static_cast<double>(last_columns(call, ks)) : 0;
    // A is read again per strip of columns if it does not stay in the near caches.
    constexpr double near_bytes = 1 << 20;
    const double again = m * k * sizeof(T) > near_bytes ? (strips - 1) * m * k : 0;
    const bool strided = call.a.row != 1 && call.a.column != 1;
    return {.bytes = Gemm::cost(args).bytes + batch * again * sizeof(T),
            .operations =
                vector_operations(batch * tile_fmas(call, ks, slivers) + finish_fmas(call, false)),
            .blocks = batch * tiles,
            .steps = (m * std::ceil(n / ks.lanes) +
                      (copies != Copies::none ? strip_elements(call, ks) : 0)) /
                     tiles,
            .threads = threads_of(call, ks, copies, context),
            .path = strided                  ? "A strided"
                    : copies == Copies::none ? ""
                    : call.b.column == 1     ? "copied"
                                             : "B gathered"};
  });
}

void run(const Gemm::Args& args, Context& context) {
  const RowMajorProduct call = row_major_product(args);
  with_sums(call.in, [&]<class T>() { small<T>(call, context); });
}

const Rung<Gemm> self{
    {.name = "small", .after = "packed_simd", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
#endif
