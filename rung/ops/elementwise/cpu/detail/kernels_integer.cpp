// SPDX-License-Identifier: Apache-2.0
// elementwise: the vector kernels in i32, i64 and u8.
#include <hwy/cache_control.h>

#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::elementwise_cpu::HWY_NAMESPACE {

Kernel find_integer(ElementwiseFunction function, DType dtype) {
  return visit<std::int32_t, std::int64_t, std::uint8_t>(
      dtype, [&]<class T>() -> Kernel { return find<T>(function); });
}

}  // namespace rung::elementwise_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::elementwise_cpu {
HWY_EXPORT(find_integer);

Kernel kernel_integer(ElementwiseFunction function, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(find_integer)(function, dtype);
}
void stream_end() { hwy::FlushStream(); }
}  // namespace rung::elementwise_cpu
#endif
