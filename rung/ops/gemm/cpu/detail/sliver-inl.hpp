// SPDX-License-Identifier: Apache-2.0
//
// The tile for the last few columns of C: at most four, of f32.
//
// Columns alone would leave three quarters of a vector idle, at n = 100 a tenth of all the
// arithmetic. So k is what a vector goes along: each 128-bit block holds four k of one column of B,
// all blocks of A's vector the same four k of a row, which one load brings; at the end each block
// is added up. That is paid for by contiguous rows of A, and four rows of B are transposed for each
// four k, once for all rows of the tile.
#if defined(RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_
#endif

#include <hwy/highway.h>

#include "rung/ops/gemm/cpu/detail/tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
template <class T>
constexpr int sliver_columns = 0;
constexpr int sliver_rows = 0;
template <class T>
TileFunction<T>* const* sliver_table() {
  return nullptr;
}
#else
template <class T>
constexpr int sliver_columns = std::is_same_v<T, float> ? 4 : 0;

constexpr int sliver_vectors = 16 / lanes<float>();  // that hold four blocks
constexpr int sliver_rows = narrow_tile_rows / sliver_vectors;

using Block = hn::CappedTag<float, 4>;
using BlockVec = hn::Vec<Block>;
using Sliver = hn::Vec<Full<float> >;

// Vectors of blocks: the blocks one by one, and back; one block in all places.
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
HWY_INLINE void split(D d, hn::Vec<D> v, BlockVec* block) {
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

// A matrix of 4 x 4, a row to a block.
template <class V, int vectors>
HWY_INLINE void transpose(V (&m)[vectors]) {
  const Full<float> d;
  if constexpr (vectors == 4) {
    const hn::Repartition<double, Full<float> > pairs;
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
    // Of rows 0 | 1 and 2 | 3: (00 20 01 21 | 10 30 11 31), and the same of columns 2 and 3.
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

// Adds up each block of four vectors: lane i of a block is the sum of that block of v_i.
HWY_INLINE Sliver sum_blocks(Sliver v0, Sliver v1, Sliver v2, Sliver v3) {
  const Full<float> d;
  const hn::Repartition<double, Full<float> > pairs;
  const auto two = [&](Sliver x, Sliver y) HWY_ATTR {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, x, y), hn::InterleaveUpper(d, x, y)));
  };
  const auto low = two(v0, v1);
  const auto high = two(v2, v3);
  return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                 hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
}

template <int rows>
void sliver(const TileArgs<float>& t) {
  const Full<float> d;
  const Block block;
  const auto columns = hn::FirstN(block, static_cast<std::size_t>(t.columns));
  // Rounded up, so that rows can be added up by fours.
  Sliver acc[(rows + 3) / 4 * 4][sliver_vectors];
#pragma GCC unroll 32
  for (auto& row : acc) {
    for (auto& v : row) v = hn::Zero(d);
  }
  const float* b = t.b;
  const float* a = t.a;
  // Four k; fewer at the end, where nothing beyond them is read.
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
        asm("" : "+r"(x));  // one moving pointer: see update() in tile-inl.hpp
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
  // The sums, a row of C to a block.
  BlockVec sums[(rows + 3) / 4 * 4];
  const BlockVec alpha = hn::Set(block, t.alpha);
#pragma GCC unroll 8
  for (int i = 0; i < rows; i += 4) {
    Sliver four[sliver_vectors];  // a column to a block
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

template <class T>
TileFunction<T>* const* sliver_table() {
  if constexpr (sliver_columns<T> == 0) {
    return nullptr;
  } else {
    static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
      return std::array<TileFunction<T>*, sliver_rows>{&sliver<r + 1>...};
    }
    (std::make_integer_sequence<int, sliver_rows>());
    return table.data();
  }
}
#endif

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
