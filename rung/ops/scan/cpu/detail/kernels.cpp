// SPDX-License-Identifier: Apache-2.0
// The vector kernels of scan, compiled once per family of types, for every instruction set.
#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE Floating
#endif

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/split.hpp"  // types: Floating Integers
#include "rung/ops/scan/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
namespace {

template <class... Ts>
Kernel find(Types<Ts...> /*family*/, DType dtype, ScanOperation operation) {
  return visit<Ts...>(dtype, [&]<class T>() {
    return visit_scan(operation, [&]<class Operation>() { return make_kernel<T, Operation>(); });
  });
}
Kernel kernel(DType dtype, ScanOperation operation) {
  return find(RUNG_SPLIT_TYPE(), dtype, operation);
}

}  // namespace
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::scan_cpu {
namespace {
HWY_EXPORT(kernel);
}  // namespace

/// Defined in the part of this file that is for this family of types.
template <class Family>
Kernel kernel_among(DType dtype, ScanOperation operation);
template <>
Kernel kernel_among<RUNG_SPLIT_TYPE>(DType dtype, ScanOperation operation) {
  return HWY_DYNAMIC_DISPATCH(kernel)(dtype, operation);
}

#if RUNG_SPLIT_ONCE
Kernel kernel_of(DType dtype, ScanOperation operation) {
  return is_floating(dtype) ? kernel_among<Floating>(dtype, operation)
                            : kernel_among<Integers>(dtype, operation);
}
#endif
}  // namespace rung::scan_cpu
#endif
