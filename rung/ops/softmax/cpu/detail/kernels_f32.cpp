// SPDX-License-Identifier: Apache-2.0
//
// softmax's vector kernels for f32, and from f32 back to f16 and bf16.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/softmax/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {

void work_f32(const Call& call, const Plan& plan, const cpu::Team& team, void* scratch,
              void* shared) {
  visit<float, f16, bf16>(call.args->y.dtype,
                          [&]<class Y>() { work_on<float, Y>(call, plan, team, scratch, shared); });
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::softmax_cpu {
HWY_EXPORT(work_f32);
void work_on_f32(const Call& call, const Plan& plan, const cpu::Team& team, void* scratch,
                 void* shared) {
  HWY_DYNAMIC_DISPATCH(work_f32)(call, plan, team, scratch, shared);
}
}  // namespace rung::softmax_cpu
#endif
