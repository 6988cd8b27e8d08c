// SPDX-License-Identifier: Apache-2.0
//
// The loop that every vector kernel of elementwise is.
#if defined(RUNG_OPS_ELEMENTWISE_CPU_KERNELS_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_ELEMENTWISE_CPU_KERNELS_INL_HPP_
#undef RUNG_OPS_ELEMENTWISE_CPU_KERNELS_INL_HPP_
#else
#define RUNG_OPS_ELEMENTWISE_CPU_KERNELS_INL_HPP_
#endif

#include <algorithm>

#include "rung/cpu/load-inl.hpp"
#include "rung/ops/elementwise/cpu/detail/functions-inl.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::elementwise_cpu::HWY_NAMESPACE {

/// What T is computed in: f32 for the 2-byte floats.
template <class T>
using Tag = hn::ScalableTag<Accumulator<T>>;

enum class Store : bool { ordinary, streaming };

/// One vector of results, whole or its first n lanes.
template <class F, Store store, class T, class V, class... Count>
HWY_INLINE void step(const T* x, const T* y, const T* w, T* z, const Parameters<V>& parameters,
                     Count... n) {
  const Tag<T> d;
  const auto load = [&](const T* from) {
    if constexpr (sizeof...(n) == 0) {
      return cpu::HWY_NAMESPACE::load_as(d, from);
    } else {
      return cpu::HWY_NAMESPACE::load_as_n(d, from, n...);
    }
  };
  const V a = load(x);
  V b = a;
  V c = a;
  if constexpr (F::arity > 1) b = load(y);
  if constexpr (F::arity > 2) c = load(w);
  const V result = F{}(d, parameters, a, b, c);
  if constexpr (sizeof...(n) != 0) {
    cpu::HWY_NAMESPACE::store_as_n(result, d, z, n...);
  } else if constexpr (store == Store::streaming) {
    const cpu::HWY_NAMESPACE::StoredTag<T, Tag<T>> stored;
    using Bits = hn::TFromD<decltype(stored)>;
    hn::Stream(cpu::HWY_NAMESPACE::narrow<T>(d, result), stored, reinterpret_cast<Bits*>(z));
  } else {
    cpu::HWY_NAMESPACE::store_as(result, d, z);
  }
}

/// Whole groups of vectors from `i` on; where they end.
template <class F, Store store, class T, class V>
HWY_INLINE std::int64_t groups(const T* x, const T* y, const T* w, T* z,
                               const Parameters<V>& parameters, std::int64_t i,
                               std::int64_t count) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Tag<T>()));
  // Four vectors a turn: enough to hide the loop behind the memory accesses, and for chains of
  // arithmetic (exp: some 12 instructions, each waiting for the last) to overlap.
  constexpr int unroll = 4;
  for (; i + unroll * lanes <= count; i += unroll * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < unroll; ++v) {
      const std::int64_t at = i + v * lanes;
      step<F, store>(x + at, y + at, w + at, z + at, parameters);
    }
  }
  return i;
}

template <class F, class T>
void map(const void* x_data, const void* y_data, const void* w_data, void* z_data,
         std::int64_t count, double alpha, bool streaming) {
  const T* x = static_cast<const T*>(x_data);
  const T* y = static_cast<const T*>(y_data);
  const T* w = static_cast<const T*>(w_data);
  T* z = static_cast<T*>(z_data);
  const Tag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Parameters<hn::Vec<Tag<T>>> parameters{hn::Set(d, static_cast<Accumulator<T>>(alpha))};
  std::int64_t i = 0;
  if (streaming) {
    // Streaming stores want aligned addresses: the first elements go the ordinary way.
    const auto vector_bytes = static_cast<std::uintptr_t>(lanes) * sizeof(T);
    const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(z) % vector_bytes;
    if (past != 0) {
      i = std::min(count, static_cast<std::int64_t>((vector_bytes - past) / sizeof(T)));
      step<F, Store::ordinary>(x, y, w, z, parameters, static_cast<std::size_t>(i));
    }
    i = groups<F, Store::streaming>(x, y, w, z, parameters, i, count);
  } else {
    i = groups<F, Store::ordinary>(x, y, w, z, parameters, i, count);
  }
  for (; i + lanes <= count; i += lanes) {
    step<F, Store::ordinary>(x + i, y + i, w + i, z + i, parameters);
  }
  if (i < count) {
    step<F, Store::ordinary>(x + i, y + i, w + i, z + i, parameters,
                             static_cast<std::size_t>(count - i));
  }
}

template <class T>
Kernel find(ElementwiseFunction function) {
  return with_function<T>(function, []<class F>(F) -> Kernel { return map<F, T>; });
}

}  // namespace rung::elementwise_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
