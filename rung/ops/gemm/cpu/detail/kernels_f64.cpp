// SPDX-License-Identifier: Apache-2.0
//
// The kernels whose sums are f64.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/gemm/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {

const Kernels<double>& kernels_f64() {
  static const Kernels<double> table = [] {
    Kernels<double> k{};
    fill_tiles(k);
    k.pack[static_cast<int>(DType::f64)] = pack<double, double>;
    k.copy[static_cast<int>(DType::f64)] = copy_rows<double, double>;
    k.finish[static_cast<int>(DType::f64)] = finish<double, double>;
    return k;
  }();
  return table;
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
HWY_EXPORT(kernels_f64);
template <>
const Kernels<double>& kernels<double>() {
  return HWY_DYNAMIC_DISPATCH(kernels_f64)();
}
}  // namespace rung::gemm_cpu
#endif
