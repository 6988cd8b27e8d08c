// SPDX-License-Identifier: Apache-2.0
// The column kernels of reduce, compiled for every instruction set.
#include "rung/cpu/foreach_target.hpp"
#include "rung/ops/reduce/cpu/detail/columns-inl.hpp"

#if HWY_ONCE
namespace rung::reduce_cpu {
namespace {
HWY_EXPORT(fold_columns);
HWY_EXPORT(gather);
}  // namespace
void fold_columns(DType element, Fold fold, const Columns& columns) {
  HWY_DYNAMIC_DISPATCH(fold_columns)(element, fold, columns);
}
void gather(DType from, const void* x, std::int64_t stride, std::int64_t count, void* to) {
  HWY_DYNAMIC_DISPATCH(gather)(from, x, stride, count, to);
}
}  // namespace rung::reduce_cpu
#endif
