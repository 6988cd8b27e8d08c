// SPDX-License-Identifier: Apache-2.0
// The row kernels of reduce, compiled for every instruction set.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/rows-inl.hpp"

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(fold_rows);
}
void fold_rows(DType element, Fold fold, const Rows& rows) {
  HWY_DYNAMIC_DISPATCH(fold_rows)(element, fold, rows);
}
}  // namespace rung::reduce_cpu
#endif
