// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels of floating types, and finds a type's among these and those of
// kernels_integer.cpp.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/scan/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
inline Kernel floating_kernel(DType dtype, ScanOperation operation) {
  return visit<float, double, f16, bf16>(dtype, [&]<class T>() {
    return visit_scan(operation, [&]<class Operation>() { return make_kernel<T, Operation>(); });
  });
}
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::scan_cpu {
namespace {
HWY_EXPORT(floating_kernel);
}  // namespace
Kernel integer_kernel(DType dtype, ScanOperation operation);

Kernel kernel_of(DType dtype, ScanOperation operation) {
  if (!is_floating(dtype)) return integer_kernel(dtype, operation);
  return HWY_DYNAMIC_DISPATCH(floating_kernel)(dtype, operation);
}
}  // namespace rung::scan_cpu
#endif
