// SPDX-License-Identifier: Apache-2.0
//
// The kernels whose sums are f32: for matrices of f32, f16 and bf16.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/gemm/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::gemm_cpu::HWY_NAMESPACE {

const Kernels<float>& kernels_f32() {
  static const Kernels<float> table = [] {
    Kernels<float> k{};
    fill_tiles(k);
    k.pack[static_cast<int>(DType::f32)] = pack<float, float>;
    k.pack[static_cast<int>(DType::f16)] = pack<float, f16>;
    k.pack[static_cast<int>(DType::bf16)] = pack<float, bf16>;
    k.copy[static_cast<int>(DType::f32)] = copy_rows<float, float>;
    k.copy[static_cast<int>(DType::f16)] = copy_rows<float, f16>;
    k.copy[static_cast<int>(DType::bf16)] = copy_rows<float, bf16>;
    k.finish[static_cast<int>(DType::f32)] = finish<float, float>;
    k.finish[static_cast<int>(DType::f16)] = finish<float, f16>;
    k.finish[static_cast<int>(DType::bf16)] = finish<float, bf16>;
    return k;
  }();
  return table;
}

}  // namespace rung::gemm_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::gemm_cpu {
HWY_EXPORT(kernels_f32);
template <>
const Kernels<float>& kernels<float>() {
  return HWY_DYNAMIC_DISPATCH(kernels_f32)();
}
}  // namespace rung::gemm_cpu
#endif
