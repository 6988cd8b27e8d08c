// SPDX-License-Identifier: Apache-2.0
// From pairs to results: what the engine of reduce stores.
#pragma once

#include <string>

#include "rung/ops/reduce/cpu/detail/fold.hpp"

namespace rung::reduce_cpu {

/// Bound i of the segments; throws Error when it leaves the axis or is before the one before.
inline std::int64_t segment_bound(const Reduce::Args& args, std::int64_t i) {
  const auto at = [&](std::int64_t index) {
    const std::int64_t place = index * args.offsets.strides[0];
    return args.offsets.dtype == DType::i32
               ? std::int64_t{static_cast<const std::int32_t*>(args.offsets.data)[place]}
               : static_cast<const std::int64_t*>(args.offsets.data)[place];
  };
  const std::int64_t bound = at(i);
  const std::int64_t before = i > 0 ? at(i - 1) : 0;
  if (bound >= before && bound >= 0 && bound <= args.terms.size()) return bound;
  throw Error(ErrorCode::invalid_argument,
              "reduce: offsets[" + std::to_string(i) + "] is " + std::to_string(bound) + " after " +
                  std::to_string(before) + "; accepted: ascending numbers from 0 to " +
                  std::to_string(args.terms.size()));
}

/// Stores `count` results from y's element `first` on, `step` apart. They have `terms` terms each,
/// or as many as are between their bounds.
template <class W>
void store_results(const Reduce::Args& args, std::int64_t first, std::int64_t step,
                   std::int64_t count, const W* value, const W* rest, std::int64_t terms,
                   const std::int64_t* bounds = nullptr) {
  with_result_type<W>(args.y.dtype, [&]<class Y>() {
    Y* y = static_cast<Y*>(args.y.data) + first;
    if (args.operation == Reduction::sum && !std::is_integral_v<Y>) {
      // Nothing to decide for each result, of which short rows have many.
      for (std::int64_t i = 0; i < count; ++i) {
        y[i * step] = finish<Y>(Reduction::sum, value[i], rest[i], 1);
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t n = bounds != nullptr ? bounds[i + 1] - bounds[i] : terms;
      y[i * step] = finish<Y>(args.operation, value[i], rest[i], n);
    }
  });
}

}  // namespace rung::reduce_cpu
