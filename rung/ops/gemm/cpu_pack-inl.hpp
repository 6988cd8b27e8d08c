// SPDX-License-Identifier: Apache-2.0
//
// Packing: a panel of a matrix, copied into the order in which a tile reads it and converted to the
// type sums are kept in.
#if defined(RUNG_OPS_GEMM_CPU_PACK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_GEMM_CPU_PACK_INL_HPP_
#undef RUNG_OPS_GEMM_CPU_PACK_INL_HPP_
#else
#define RUNG_OPS_GEMM_CPU_PACK_INL_HPP_
#endif

#include <hwy/highway.h>

#include "rung/ops/gemm/cpu_engine.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of the accumulator type from consecutive elements of the matrix's type.
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const hn::TFromD<D>* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const bf16* from) {
  // The upper half of a float: widen and shift, which needs no conversion instruction.
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
template <class D>
HWY_INLINE hn::Vec<D> load_as(D d, const f16* from) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class T, class In>
HWY_INLINE T element_as(In x) {
  return static_cast<T>(static_cast<Accumulator<In>>(x));
}

// Contiguous along the panel's width: a copy. Vectors may run over into the next columns, which are
// written afterwards, but not over the end of the panel: the next one may be another thread's.
template <class T, class In>
void pack_copy(const In* from, std::int64_t column, int count, int width, std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  const int whole = count / lanes * lanes;
  const int rest = count - whole;
  for (std::int64_t p = 0; p < k; ++p, from += column, to += width) {
    int i = 0;
    for (; i < whole; i += lanes) hn::StoreU(load_as(d, from + i), d, to + i);
    if (rest != 0) {
      if constexpr (std::is_same_v<T, In>) {
        const auto mask = hn::FirstN(d, static_cast<std::size_t>(rest));
        const auto x = hn::MaskedLoad(mask, d, from + i);
        if ((k - p) * width >= whole + lanes) {
          hn::StoreU(x, d, to + i);
        } else {
          hn::BlendedStore(x, mask, d, to + i);
        }
      } else {
        for (int j = i; j < count; ++j) to[j] = element_as<T>(from[j]);
      }
    }
    for (i = count; i < width; ++i) to[i] = T{0};
  }
}

#if HWY_TARGET != HWY_SCALAR
// Rows r, r + s, r + 2s, ... of 16 bytes of T each, one to each 128-bit block of a vector.
template <class D, class In>
HWY_INLINE hn::Vec<D> load_blocks(D d, const In* from, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    return load_as(d, from);
  } else {
    const hn::Half<D> half;
    constexpr int blocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 32;
    return hn::Combine(d, load_blocks(half, from + blocks * step, step),
                       load_blocks(half, from, step));
  }
}

// Contiguous along k: transposes `lanes` rows at a time. Row 4b + j of a group (2b + j for f64) is
// loaded into block b of vector j, so that transposing 4x4 (2x2) within all blocks at once leaves
// whole columns: 20 shuffles for 64 floats, a third of them in the shadow of loads.
template <class T, class In>
void pack_transposed(const In* from, std::int64_t row, int count, int width, std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  constexpr int per_block = 16 / sizeof(T);
  std::int64_t p = 0;
  // Again vectors run over into later columns, and those near the end are left to the scalar loop.
  // From the last group of rows to the first: what the last spills, the first overwrites.
  const int last_group = (count - 1) / lanes * lanes;
  for (; (k - p - (per_block - 1)) * width >= last_group + lanes;
       p += per_block, to += per_block * width) {
    for (int i = last_group; i >= 0; i -= lanes) {
      hn::Vec<decltype(d)> out[per_block];
      if (i + lanes <= count) {
        const In* x = from + i * row + p;
#pragma GCC unroll 4
        for (int j = 0; j < per_block; ++j) out[j] = load_blocks(d, x + j * row, per_block * row);
      } else {
        // Fewer rows than lanes: repeat the last one.
        alignas(64) T rows[lanes * per_block];
        const hn::CappedTag<T, per_block> block;
#pragma GCC unroll 16
        for (int r = 0; r < lanes; ++r) {
          const In* x = from + std::min(i + r, count - 1) * row + p;
          const int place = r % per_block * lanes + r / per_block * per_block;
          hn::Store(load_as(block, x), block, rows + place);
        }
#pragma GCC unroll 4
        for (int j = 0; j < per_block; ++j) out[j] = hn::Load(d, rows + j * lanes);
      }
      if constexpr (per_block == 4) {
        const auto ac_low = hn::InterleaveLower(d, out[0], out[2]);
        const auto bd_low = hn::InterleaveLower(d, out[1], out[3]);
        const auto ac_high = hn::InterleaveUpper(d, out[0], out[2]);
        const auto bd_high = hn::InterleaveUpper(d, out[1], out[3]);
        out[0] = hn::InterleaveLower(d, ac_low, bd_low);
        out[1] = hn::InterleaveUpper(d, ac_low, bd_low);
        out[2] = hn::InterleaveLower(d, ac_high, bd_high);
        out[3] = hn::InterleaveUpper(d, ac_high, bd_high);
      } else {
        const auto low = hn::InterleaveLower(d, out[0], out[1]);
        out[1] = hn::InterleaveUpper(d, out[0], out[1]);
        out[0] = low;
      }
#pragma GCC unroll 4
      for (int j = 0; j < per_block; ++j) hn::StoreU(out[j], d, to + j * width + i);
    }
  }
  for (; p < k; ++p, to += width) {
    for (int i = 0; i < width; ++i) to[i] = element_as<T>(from[std::min(i, count - 1) * row + p]);
  }
}
#endif

template <class T, class In>
void pack(const void* from, std::int64_t row, std::int64_t column, int count, int width,
          std::int64_t k, T* to) {
  const In* x = static_cast<const In*>(from);
  if (row == 1) return pack_copy(x, column, count, width, k, to);
#if HWY_TARGET != HWY_SCALAR
  if (column == 1) return pack_transposed(x, row, count, width, k, to);
#endif
  for (std::int64_t p = 0; p < k; ++p) {
    for (int i = 0; i < count; ++i) {
      to[p * width + i] = element_as<T>(x[i * row + p * column]);
    }
    for (int i = count; i < width; ++i) to[p * width + i] = T{0};
  }
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
