// SPDX-License-Identifier: Apache-2.0
// elementwise: the vector kernels in f32.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::elementwise_cpu::HWY_NAMESPACE {
Kernel find_f32(ElementwiseFunction function) { return find<float>(function); }
}  // namespace rung::elementwise_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::elementwise_cpu {
HWY_EXPORT(find_f32);
Kernel kernel_f32(ElementwiseFunction function) { return HWY_DYNAMIC_DISPATCH(find_f32)(function); }
}  // namespace rung::elementwise_cpu
#endif
