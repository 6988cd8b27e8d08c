// SPDX-License-Identifier: Apache-2.0
// Element-wise reductions of tensor stores, by type.
#include <algorithm>
#include <atomic>
#include <type_traits>

#include "rung/simt/copy_engine.hpp"

namespace rung::simt {
namespace {

/// Returns the value as a number to combine; 16-bit floats are converted to float.
template <class T>
auto number(T value) {
  if constexpr (std::is_arithmetic_v<T>) return value;
  if constexpr (!std::is_arithmetic_v<T>) return static_cast<float>(value);
}

template <TensorReduction Reduction, class T>
T combined(T a, T b) {
  switch (Reduction) {
    case TensorReduction::add:
      return static_cast<T>(number(a) + number(b));
    case TensorReduction::min:
      return number(b) < number(a) ? b : a;
    case TensorReduction::max:
      return number(a) < number(b) ? b : a;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (Reduction == TensorReduction::bit_and) return static_cast<T>(a & b);
    if (Reduction == TensorReduction::bit_or) return static_cast<T>(a | b);
    return static_cast<T>(a ^ b);
  }
  return a;
}

template <TensorReduction Reduction, class T>
void reduce_elements(void* to, const void* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
    const std::atomic_ref<T> element(static_cast<T*>(to)[i]);
    T before = element.load(std::memory_order_relaxed);
    while (!element.compare_exchange_weak(
        before, combined<Reduction>(before, static_cast<const T*>(from)[i]),
        std::memory_order_relaxed)) {
    }
  }
}

template <class T>
BulkReduce reduction_in(TensorReduction reduction) {
  using R = TensorReduction;
  constexpr bool wide_float = std::is_floating_point_v<T>;
  switch (reduction) {
    case R::add:
      return &reduce_elements<R::add, T>;
    case R::min:
      return wide_float ? nullptr : &reduce_elements<R::min, T>;
    case R::max:
      return wide_float ? nullptr : &reduce_elements<R::max, T>;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (reduction == R::bit_and) return &reduce_elements<R::bit_and, T>;
    if (reduction == R::bit_or) return &reduce_elements<R::bit_or, T>;
    return &reduce_elements<R::bit_xor, T>;
  }
  return nullptr;
}

}  // namespace

BulkReduce reduction_of(DType dtype, TensorReduction reduction) {
  switch (dtype) {
    case DType::f32:
      return reduction_in<float>(reduction);
    case DType::f64:
      return reduction_in<double>(reduction);
    case DType::f16:
      return reduction_in<f16>(reduction);
    case DType::bf16:
      return reduction_in<bf16>(reduction);
    case DType::i32:
      return reduction_in<std::int32_t>(reduction);
    case DType::i64:
      return reduction_in<std::int64_t>(reduction);
    default:
      return nullptr;
  }
}

}  // namespace rung::simt
