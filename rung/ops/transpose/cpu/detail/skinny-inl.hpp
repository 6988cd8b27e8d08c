// SPDX-License-Identifier: Apache-2.0
//
// Matrices with fewer rows or columns than a tile: of the tile only as much is moved as there is,
// in units of 16 bytes; what exceeds the matrix is overwritten by what follows.
#if defined(RUNG_OPS_TRANSPOSE_CPU_SKINNY_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_TRANSPOSE_CPU_SKINNY_INL_HPP_
#undef RUNG_OPS_TRANSPOSE_CPU_SKINNY_INL_HPP_
#else
#define RUNG_OPS_TRANSPOSE_CPU_SKINNY_INL_HPP_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "rung/ops/transpose/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {

/// So few elements are moved one by one before vectors are set up.
inline constexpr std::int64_t few_elements = 12;

template <int bytes>
HWY_INLINE void one_by_one(const Block& of) {
  const Block b = of;  // in registers: see stream_aligned()
  for (std::int64_t j = 0; j < b.columns; ++j) {
    for (std::int64_t i = 0; i < b.rows; ++i) {
      std::memcpy(b.y + j * b.y_row + i * bytes, b.x + i * b.x_row + j * bytes, bytes);
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Few columns, at least a tile of rows: whole lines of y. Groups of 16 bytes of x's rows, the last
/// one reaching back; rows shorter than that are read together with what follows them.
template <int bytes>
HWY_NOINLINE void few_columns(const Block& b) {
  using T = typename LaneOf<bytes>::Type;
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
        hn::StoreU(v, hn::ScalableTag<T>(), reinterpret_cast<T*>(y + j * b.y_row + at));
      });
    } else {
      transpose_part<bytes>(x, b.x_row, y, b.y_row, side, b.columns);
    }
  }
}

/// 16 bytes each of every step-th of some rows, one to each 128-bit block of a vector.
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

/// Few rows, at least 16 bytes of columns: a row of y fits in `blocks` of 16 bytes and is one
/// store, with vectors of 32 bytes perhaps two. What that writes beyond the row, the next row
/// overwrites; rows that are not adjacent, and the last ones, are copied to their length. Tried on
/// a 2-core Zen 5 vCPU: three stores of 16 bytes in place of one of 64 for rows of 40 (f64 5x8403):
/// -10 %.
template <int bytes, int blocks>
HWY_NOINLINE void few_rows(const Block& of) {
  const Block b = of;
  using T = typename LaneOf<bytes>::Type;
  constexpr int group = 16 / bytes;
  const hn::CappedTag<T, blocks * 16 / sizeof(T)> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int vector_bytes = static_cast<int>(hn::MaxLanes(d) * sizeof(T));
  constexpr int rows_each = group * (vector_bytes / 16);  // to a vector
  constexpr int parts = blocks * 16 / vector_bytes;
  constexpr std::int64_t stored = blocks * 16;
  const std::byte* rows[blocks * group];  // those that do not exist are the last one again
  for (int i = 0; i < blocks * group; ++i) {
    rows[i] = b.x + std::min<std::int64_t>(i, b.rows - 1) * b.x_row;
  }
  const std::int64_t width = b.rows * bytes;
  const bool whole = width == stored;
  const std::int64_t y_bytes = (b.columns - 1) * b.y_row + width;
  // Where all is one vector, a mask stores a row's length.
  constexpr bool masks = HWY_TARGET <= HWY_AVX3 && bytes >= 4 && parts == 1;
  [[maybe_unused]] const auto mask = hn::FirstN(d, static_cast<std::size_t>(width) / sizeof(T));
  alignas(line_bytes) std::byte exact[masks ? 1 : group * stored];
  for (std::int64_t j = 0; j < b.columns; j += group) {
    const std::int64_t column = std::min(j, b.columns - group);
    std::byte* y = b.y + column * b.y_row;
    std::int64_t y_row = b.y_row;
    const bool direct =
        whole || (b.y_row == width && (column + group - 1) * b.y_row + stored <= y_bytes);
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
          hn::BlendedStore(v[0][k], mask, d, reinterpret_cast<T*>(y + k * y_row));
        }
        continue;
      }
    }
#pragma GCC unroll 16
    for (int k = 0; k < group; ++k) {
#pragma GCC unroll 4
      for (int part = 0; part < parts; ++part) {
        hn::StoreU(v[part][k], d, reinterpret_cast<T*>(y + k * y_row + part * vector_bytes));
      }
    }
    if (!direct) {
      for (int k = 0; k < group; ++k) {
        copy_short(exact + k * stored, b.y + (column + k) * b.y_row, width);
      }
    }
  }
}
#endif

/// Whether the matrix was one of these, and is done.
template <int bytes>
HWY_INLINE bool skinny(const Block& b) {
  if (b.rows * b.columns <= few_elements) {
    one_by_one<bytes>(b);
    return true;
  }
#if HWY_TARGET != HWY_SCALAR
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr std::int64_t group = 16 / bytes;
  if (b.rows >= side) {
    few_columns<bytes>(b);
    return true;
  }
  if (b.columns >= group) {
    if (b.rows <= group) {
      few_rows<bytes, 1>(b);
    } else if (b.rows <= 2 * group) {
      few_rows<bytes, 2>(b);
    } else {
      few_rows<bytes, 4>(b);
    }
    return true;
  }
#endif
  return false;
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
