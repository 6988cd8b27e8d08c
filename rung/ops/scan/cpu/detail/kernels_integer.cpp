// SPDX-License-Identifier: Apache-2.0
// Compiles the kernels of integer types.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/scan/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::scan_cpu::HWY_NAMESPACE {
inline Kernel integer_kernel_here(DType dtype, ScanOperation operation) {
  return visit<std::int8_t, std::uint8_t, std::uint16_t, std::int32_t, std::int64_t>(
      dtype, [&]<class T>() {
        return visit_scan(operation,
                          [&]<class Operation>() { return make_kernel<T, Operation>(); });
      });
}
}  // namespace rung::scan_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::scan_cpu {
namespace {
HWY_EXPORT(integer_kernel_here);
}  // namespace

Kernel integer_kernel(DType dtype, ScanOperation operation);
Kernel integer_kernel(DType dtype, ScanOperation operation) {
  return HWY_DYNAMIC_DISPATCH(integer_kernel_here)(dtype, operation);
}
}  // namespace rung::scan_cpu
#endif
