// SPDX-License-Identifier: Apache-2.0
//
// softmax's vector kernels for f64.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/softmax/cpu/detail/kernels-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::softmax_cpu::HWY_NAMESPACE {

void work_f64(const Call& call, const Plan& plan, const cpu::Team& team, void* scratch,
              void* shared) {
  work_on<double, double>(call, plan, team, scratch, shared);
}

}  // namespace rung::softmax_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::softmax_cpu {
HWY_EXPORT(work_f64);
void work_on_f64(const Call& call, const Plan& plan, const cpu::Team& team, void* scratch,
                 void* shared) {
  HWY_DYNAMIC_DISPATCH(work_f64)(call, plan, team, scratch, shared);
}
}  // namespace rung::softmax_cpu
#endif
