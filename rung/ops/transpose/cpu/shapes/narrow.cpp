// SPDX-License-Identifier: Apache-2.0
// transpose / narrow
//
// Idea     Matrices with fewer rows or columns than a tile: only existing 16-byte groups are moved,
//          and bytes stored beyond a short row are overwritten by the next row.
// Changes  Against simd: no padding to a full tile in L1. f32 8 x 9264 takes 5.4 us instead of
//          14.0, f32 1552 x 8 x 32 takes 36 us instead of 101 (2-core Zen 5 vCPU, one thread). The
//          small matrices of a batch take one kernel call.
// Cost     Rows of up to 64 bytes: one load per 16 bytes of x, one store per row of y.
// Limits   Ordinary stores; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>
#include <cstring>

#include "rung/cpu/transpose_tile-inl.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;

template <int bytes>
HWY_INLINE void one_by_one(const TransposeBlock& of) {
  // a copy in registers: through the reference, strides are reloaded after each store
  const TransposeBlock b = of;
  for (std::int64_t j = 0; j < b.columns; ++j) {
    for (std::int64_t i = 0; i < b.rows; ++i) {
      std::memcpy(b.y + j * b.y_row + i * bytes, b.x + i * b.x_row + j * bytes, bytes);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Transposes few columns with at least a tile of rows, in whole lines of y. The last 16-byte group
/// of x's rows overlaps the previous one; rows shorter than a group are loaded together with the
/// bytes behind them.
template <int bytes>
HWY_NOINLINE void few_columns(const TransposeBlock& b) {
  using Lane = LaneOf<bytes>;
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t group = 16 / bytes;
  const std::int64_t x_bytes = (b.rows - 1) * b.x_row + b.columns * bytes;
  for (std::int64_t i = 0; i < b.rows; i += side) {
    const std::int64_t row = std::min(i, b.rows - side);
    const std::byte* const x = b.x + row * b.x_row;
    std::byte* const y = b.y + row * bytes;
    if (b.columns >= group) {
      for (std::int64_t j = 0; j < b.columns; j += group) {
        const std::int64_t column = std::min(j, b.columns - group);
        transpose_tile<bytes>(x + column * bytes, b.x_row, y + column * b.y_row, b.y_row, 1);
      }
    } else if ((row + side - 1) * b.x_row + 16 <= x_bytes) {
      transpose_tile_to<bytes>(x, b.x_row, 1, [&](int j, int at, auto v) HWY_ATTR {
        if (j >= b.columns) return;
        hn::StoreU(v, hn::ScalableTag<Lane>(), reinterpret_cast<Lane*>(y + j * b.y_row + at));
      });
    } else {
      transpose_part<bytes>(x, b.x_row, y, b.y_row, side, b.columns);
    }
  }
}

/// Loads 16 bytes from every step-th row, one row per 128-bit block of a vector.
template <int step, class D>
HWY_INLINE hn::Vec<D> load_rows(D d, const std::byte* const* rows, std::int64_t at) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    return hn::LoadU(d, reinterpret_cast<const hn::TFromD<D>*>(*rows + at));
  } else {
    const hn::Half<D> half;
    constexpr std::size_t blocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 32;
    return hn::Combine(d, load_rows<step>(half, rows + blocks * step, at),
                       load_rows<step>(half, rows, at));
  }
}

/// Transposes few rows with at least 16 bytes of columns: a row of y fits `blocks` blocks of 16
/// bytes and takes one store (up to two with 32-byte vectors). The next row overwrites bytes stored
/// beyond a row; rows that are not adjacent, and the last rows, are stored with a mask or copied.
template <int bytes, int blocks>
HWY_NOINLINE void few_rows(const TransposeBlock& of) {
  const TransposeBlock b = of;
  using Lane = LaneOf<bytes>;
  constexpr int group = 16 / bytes;
  const hn::CappedTag<Lane, blocks * 16 / sizeof(Lane)> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int vector_bytes = static_cast<int>(hn::MaxLanes(d) * sizeof(Lane));
  constexpr int rows_each = group * (vector_bytes / 16);  // per vector
  constexpr int parts = blocks * 16 / vector_bytes;
  constexpr std::int64_t stored = blocks * 16;
  const std::byte* rows[blocks * group];  // missing rows repeat the last one
  for (int i = 0; i < blocks * group; ++i) {
    rows[i] = b.x + std::min<std::int64_t>(i, b.rows - 1) * b.x_row;
  }
  const std::int64_t width = b.rows * bytes;
  const std::int64_t y_bytes = (b.columns - 1) * b.y_row + width;
  constexpr bool masks = HWY_TARGET <= HWY_AVX3 && bytes >= 4 && parts == 1;
  [[maybe_unused]] const auto mask = hn::FirstN(d, static_cast<std::size_t>(width) / sizeof(Lane));
  alignas(line_bytes) std::byte exact[masks ? 1 : group * stored];
  for (std::int64_t j = 0; j < b.columns; j += group) {
    const std::int64_t column = std::min(j, b.columns - group);
    std::byte* y = b.y + column * b.y_row;
    std::int64_t y_row = b.y_row;
    const bool direct =
        width == stored || (b.y_row == width && (column + group - 1) * b.y_row + stored <= y_bytes);
    if (!direct && !masks) {
      y = exact;
      y_row = stored;
    }
    V v[parts][group];
#pragma GCC unroll 4
    for (int part = 0; part < parts; ++part) {
#pragma GCC unroll 16
      for (int k = 0; k < group; ++k) {
        v[part][k] = load_rows<group>(d, rows + part * rows_each + k, column * bytes);
      }
      transpose_in_blocks<group>(d, v[part]);
    }
    if constexpr (masks) {
      if (!direct) {
#pragma GCC unroll 16
        for (int k = 0; k < group; ++k) {
          hn::BlendedStore(v[0][k], mask, d, reinterpret_cast<Lane*>(y + k * y_row));
        }
        continue;
      }
    }
#pragma GCC unroll 16
    for (int k = 0; k < group; ++k) {
#pragma GCC unroll 4
      for (int part = 0; part < parts; ++part) {
        hn::StoreU(v[part][k], d, reinterpret_cast<Lane*>(y + k * y_row + part * vector_bytes));
      }
    }
    for (int k = 0; !direct && k < group; ++k) {
      cpu::copy_short(exact + k * stored, b.y + (column + k) * b.y_row, width);
    }
  }
}
#endif

template <int bytes>
HWY_INLINE void narrow_matrix(const TransposeBlock& b) {
#if HWY_TARGET == HWY_SCALAR
  one_by_one<bytes>(b);
#else
  constexpr std::int64_t few_elements = 12;  // take less time than setting up vectors
  constexpr std::int64_t group = 16 / bytes;
  if (b.rows * b.columns <= few_elements) {
    one_by_one<bytes>(b);
  } else if (b.rows >= tile_side<bytes>) {
    few_columns<bytes>(b);
  } else if (b.columns < group) {
    transpose_part<bytes>(b.x, b.x_row, b.y, b.y_row, b.rows, b.columns);
  } else if (b.rows <= group) {
    few_rows<bytes, 1>(b);
  } else if (b.rows <= 2 * group) {
    few_rows<bytes, 2>(b);
  } else {
    few_rows<bytes, 4>(b);
  }
#endif
}

}  // namespace

void narrow_matrices(const TransposeBlock& first, const Batch& batch) {
  with_elements(first.element_bytes, [&]<class T>() HWY_ATTR {
    TransposeBlock b = first;
    for (std::int64_t i = 0; i < batch.count; ++i, b.x += batch.x, b.y += batch.y) {
      narrow_matrix<sizeof(T)>(b);
    }
  });
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace transpose_cpu {
HWY_EXPORT(narrow_matrices);
void transpose_narrow(const TransposeBlock& block, const Batch& batch) {
  HWY_DYNAMIC_DISPATCH(narrow_matrices)(block, batch);
}
}  // namespace transpose_cpu

namespace {
using namespace transpose_cpu;

Support supports(const Transpose::Args& args, const Context& context) {
  const Moves& m = args.moves;
  if (m.empty() || (m.dense() && is_narrower_than_tile(m))) return require_dense(args, context);
  return unsupported("dense matrices of less than 64 bytes one way");
}

void run(const Transpose::Args& args, Context&) {
  const Grid grid = cached_grid(args.moves);
  grid.for_each({0, grid.size()},
                [&](const BlockRange& block) { transpose_narrow(block_of(args, block)); });
}

const Rung<Transpose> self{
    {.name = "narrow", .after = "simd", .teaching = true, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
#endif
