// SPDX-License-Identifier: Apache-2.0
//
// The tile for the last few columns of C: at most as many as a 128-bit block has lanes. f32 only: a
// block of f64 holds fewer k of A than a 512-bit vector has blocks.
//
// Columns alone would leave three quarters of a vector idle, at n = 100 a tenth of all the
// arithmetic. So each 128-bit block takes another k: block b of the vector of B holds row p + b,
// that of A repeats element p + b of a row, and at the end the blocks are added up. A row of A
// costs one load and one permutation for each 4 k (AVX-512), which has to be paid for by contiguous
// rows.
#if defined(RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_SLIVER_INL_HPP_
#endif

#include <hwy/highway.h>

#include "rung/ops/gemm/cpu_tile-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
template <class T>
constexpr int sliver_columns = 0;
template <class T>
TileFunction<T>* const* sliver_table() {
  return nullptr;
}
#else
template <class T>
constexpr int sliver_columns = std::is_same_v<T, float> ? 4 : 0;

template <class T>
using Block = hn::CappedTag<T, 16 / sizeof(T)>;

// Rows p, p + 1, ... of B, one to a block; rows from `k` on are zero.
template <class D, class T = hn::TFromD<D> >
HWY_INLINE hn::Vec<D> load_rows(D d, const T* from, std::int64_t row, std::int64_t k,
                                hn::Mask<Block<T> > columns) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) == 16) {
    return k > 0 ? hn::MaskedLoad(columns, d, from) : hn::Zero(d);
  } else {
    const hn::Half<D> half;
    constexpr int rows = hn::MaxLanes(D()) * sizeof(T) / 32;
    return hn::Combine(d, load_rows(half, from + rows * row, row, k - rows, columns),
                       load_rows(half, from, row, k, columns));
  }
}

template <class D>
HWY_INLINE auto sum_of_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    return v;
  } else {
    const hn::Half<D> half;
    return sum_of_blocks(half, hn::Add(hn::UpperHalf(half, v), hn::LowerHalf(half, v)));
  }
}

template <class T, int rows>
void sliver(const TileArgs<T>& t) {
  const Full<T> d;
  using V = hn::Vec<Full<T> >;
  constexpr int per_block = 16 / sizeof(T);
  constexpr int steps = lanes<T>() / per_block;
  // Lane i of the permuted A: element i / per_block.
  using Index = hwy::MakeUnsigned<T>;
  HWY_ALIGN Index order[lanes<T>()];
  for (int i = 0; i < lanes<T>(); ++i) order[i] = static_cast<Index>(i / per_block);
  const auto spread = hn::SetTableIndices(d, order);

  V acc[rows];
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) acc[i] = hn::Zero(d);
  const Block<T> block;
  const auto columns = hn::FirstN(block, static_cast<std::size_t>(t.columns));
  const T* b = t.b;
  const T* a = t.a;
  // No element of A or B beyond k is touched: lanes that are masked out are not read.
  const auto advance = [&](std::int64_t k) HWY_ATTR {
    const V row = load_rows(d, b, t.b_row, k, columns);
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(k));
    const T* x = a;
#pragma GCC unroll 32
    for (int i = 0; i < rows; ++i) {
      acc[i] = hn::MulAdd(hn::TableLookupLanes(hn::MaskedLoad(mask, d, x), spread), row, acc[i]);
      x += t.a_row;
      asm("" : "+r"(x));  // one moving pointer: see update() in cpu_tile-inl.hpp
    }
    a += steps;
    b += steps * t.b_row;
  };
  std::int64_t k = t.k;
  for (; k >= steps; k -= steps) advance(steps);
  if (k > 0) advance(k);
#pragma GCC unroll 32
  for (int i = 0; i < rows; ++i) {
    T* c = t.c + i * t.c_row;
    auto sum = hn::Mul(sum_of_blocks(d, acc[i]), hn::Set(block, t.alpha));
    if (t.beta != T{0}) {
      sum = hn::MulAdd(hn::MaskedLoad(columns, block, c), hn::Set(block, t.beta), sum);
    }
    hn::BlendedStore(sum, columns, block, c);
  }
}

template <class T>
TileFunction<T>* const* sliver_table() {
  if constexpr (sliver_columns<T> == 0) {
    return nullptr;
  } else {
    static constexpr auto table = []<int... r>(std::integer_sequence<int, r...>) {
      return std::array<TileFunction<T>*, narrow_tile_rows>{&sliver<T, r + 1>...};
    }(std::make_integer_sequence<int, narrow_tile_rows>());
    return table.data();
  }
}
#endif

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
