// SPDX-License-Identifier: Apache-2.0
// What softmax's scalar CPU rungs share: a call with its types, row by row.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/ops/softmax/op/softmax.hpp"

namespace rung::softmax_cpu {

/// A row of any stride, read or written as the arithmetic type.
template <class T, class Sum>
struct Strided {
  T* first;
  std::int64_t step;
  Sum operator[](std::int64_t i) const {
    return static_cast<Sum>(static_cast<Accumulator<std::remove_const_t<T>>>(first[i * step]));
  }
  void set(std::int64_t i, Sum value) const { first[i * step] = static_cast<T>(value); }
};

/// body(x, dy, y, scale) for every row; dy is x where there is none.
template <class Body>
void for_each_row(const Softmax::Args& args, Body&& body) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto with_output = [&]<class Y>() {
      using Sum = Accumulator<T>;
      const auto* x = static_cast<const T*>(args.x.data);
      const auto* dy = args.backward ? static_cast<const T*>(args.dy.data) : x;
      auto* y = static_cast<Y*>(args.y.data);
      const auto scale = static_cast<Sum>(args.scale);
      for (std::int64_t row = 0; row < args.rows.count(); ++row) {
        std::int64_t at[3];
        args.rows.offsets(row, at);
        body(Strided<const T, Sum>{x + at[0], args.rows.steps[0]},
             Strided<const T, Sum>{dy + at[1], args.rows.steps[1]},
             Strided<Y, Sum>{y + at[2], args.rows.steps[2]}, scale);
      }
    };
    if (args.y.dtype == args.x.dtype) {
      with_output.template operator()<T>();
    } else if constexpr (std::is_same_v<T, float>) {
      visit<f16, bf16>(args.y.dtype, with_output);
    } else if constexpr (std::is_class_v<T>) {
      with_output.template operator()<float>();
    }
  });
}

}  // namespace rung::softmax_cpu
