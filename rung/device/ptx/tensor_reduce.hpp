// SPDX-License-Identifier: Apache-2.0
// Reductions by TMA (cp.reduce.async.bulk.tensor): a box of shared memory is combined with global
// memory, each element atomically. They are issued and awaited as tensor_store() is
// (ptx/tensor_copy.hpp). Supported operations, by the tensor map's type:
//   f32, f64   add
//   f16, bf16  add, min, max
//   i32, i64   add, min, max, bit_and, bit_or, bit_xor
#pragma once

#include <cstdint>

#include "rung/device/ptx/tensor_copy.hpp"

namespace rung::inline RUNG_TARGET::ptx {

#if defined(__CUDACC__)

enum class TensorReduction : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor };

namespace device_detail {
template <TensorReduction Reduction>
struct ReductionName;
template <>
struct ReductionName<TensorReduction::add> {
  static constexpr char text[] = "add";
};
template <>
struct ReductionName<TensorReduction::min> {
  static constexpr char text[] = "min";
};
template <>
struct ReductionName<TensorReduction::max> {
  static constexpr char text[] = "max";
};
template <>
struct ReductionName<TensorReduction::bit_and> {
  static constexpr char text[] = "and";
};
template <>
struct ReductionName<TensorReduction::bit_or> {
  static constexpr char text[] = "or";
};
template <>
struct ReductionName<TensorReduction::bit_xor> {
  static constexpr char text[] = "xor";
};
}  // namespace device_detail

template <TensorReduction Reduction, int N>
__device__ __forceinline__ void tensor_reduce(const TensorMap& map, const int (&at)[N],
                                              const void* from) {
  static_assert(N >= 1 && N <= 5);
  using Name = device_detail::ReductionName<Reduction>;
  const std::uint32_t source = shared_address(from);
  if constexpr (N == 1) {
    asm volatile(
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.%3.tile.bulk_group [%0, {%2}], [%1];" ::
            "l"(&map),
        "r"(source), "r"(at[0]), "C"(Name::text)
        : "memory");
  } else if constexpr (N == 2) {
    asm volatile(
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.%4.tile.bulk_group [%0, {%2, %3}], "
        "[%1];" ::"l"(&map),
        "r"(source), "r"(at[1]), "r"(at[0]), "C"(Name::text)
        : "memory");
  } else if constexpr (N == 3) {
    asm volatile(
        "cp.reduce.async.bulk.tensor.3d.global.shared::cta.%5.tile.bulk_group "
        "[%0, {%2, %3, %4}], [%1];" ::"l"(&map),
        "r"(source), "r"(at[2]), "r"(at[1]), "r"(at[0]), "C"(Name::text)
        : "memory");
  } else if constexpr (N == 4) {
    asm volatile(
        "cp.reduce.async.bulk.tensor.4d.global.shared::cta.%6.tile.bulk_group "
        "[%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
        "r"(source), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]), "C"(Name::text)
        : "memory");
  } else {
    asm volatile(
        "cp.reduce.async.bulk.tensor.5d.global.shared::cta.%7.tile.bulk_group "
        "[%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
        "r"(source), "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]), "C"(Name::text)
        : "memory");
  }
}

#else

using simt::TensorReduction;

template <TensorReduction Reduction, int N>
void tensor_reduce(const TensorMap& map, const int (&at)[N], const void* from,
                   simt::Place place = simt::Place::current()) {
  static_assert(N >= 1 && N <= 5);
  simt::tensor_reduce(&map, at, N, from, Reduction, place);
}

#endif

}  // namespace rung::inline RUNG_TARGET::ptx
