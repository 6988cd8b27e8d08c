// SPDX-License-Identifier: Apache-2.0
// pool's vector kernels, compiled once for each instruction set.
#include "rung/cpu/foreach_target.hpp"

#include "rung/ops/pool/cpu/detail/channels-inl.hpp"
#include "rung/ops/pool/cpu/detail/direct-inl.hpp"
#include "rung/ops/pool/cpu/detail/rows-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::pool_cpu::HWY_NAMESPACE {

void work_on(const Share& share) {
  if (share.begin == share.end) return;
  visit<float, double, f16, bf16>(share.call->args->x.dtype, [&]<class T>() HWY_ATTR {
    if (share.call->direct) {
      DirectWorker<T>(share).run();
    } else if (share.call->along == Along::channels) {
      ChannelsWorker<T>(share).run();
    } else {
      RowsWorker<T>(share).run();
    }
  });
}

}  // namespace rung::pool_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::pool_cpu {
HWY_EXPORT(work_on);
void work(const Share& share) { HWY_DYNAMIC_DISPATCH(work_on)(share); }
}  // namespace rung::pool_cpu
#endif
