// SPDX-License-Identifier: Apache-2.0
// Shared by softmax's scalar CPU rungs: a typed loop over rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/cpu/strided_row.hpp"
#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_cpu {

/// Calls body(x, y, scale) for every row, with typed accessors for its elements.
template <class Body>
void for_each_row(const Softmax::Args& args, Body&& body) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto with_output = [&]<class Y>() {
      using Sum = Accumulator<T>;
      const auto* x = static_cast<const T*>(args.x.data);
      auto* y = static_cast<Y*>(args.y.data);
      const auto scale = static_cast<Sum>(args.scale);
      for (std::int64_t row = 0; row < args.rows.count(); ++row) {
        std::int64_t at[2];
        args.rows.offsets(row, at);
        body(cpu::StridedRow<const T, Sum>{x + at[0], args.rows.steps[0]},
             cpu::StridedRow<Y, Sum>{y + at[1], args.rows.steps[1]}, scale);
      }
    };
    if (args.y.dtype == args.x.dtype) {
      with_output.template operator()<T>();
    } else if constexpr (std::is_class_v<T>) {
      with_output.template operator()<float>();
    }
  });
}

}  // namespace rung::softmax_cpu
