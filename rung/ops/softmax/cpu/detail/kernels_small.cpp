// SPDX-License-Identifier: Apache-2.0
//
// softmax's vector kernels for f16 and bf16, with sums in f32.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/softmax/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {

void work_small(const Call& call, const Plan& plan, const cpu::Team& team, void* scratch,
                void* shared) {
  visit<f16, bf16>(call.args->x.dtype, [&]<class T>() {
    if (call.args->y.dtype == call.args->x.dtype) {
      work_on<T, T>(call, plan, team, scratch, shared);
    } else {
      work_on<T, float>(call, plan, team, scratch, shared);
    }
  });
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::softmax_cpu {
HWY_EXPORT(work_small);
void work_on_small(const Call& call, const Plan& plan, const cpu::Team& team, void* scratch,
                   void* shared) {
  HWY_DYNAMIC_DISPATCH(work_small)(call, plan, team, scratch, shared);
}
}  // namespace rung::softmax_cpu
#endif
