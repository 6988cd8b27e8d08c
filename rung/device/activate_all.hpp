// SPDX-License-Identifier: Apache-2.0
// activate_all(activation, values): activate() of several values behind one branch. With a branch
// per value, the dependent instruction chains of the values would not overlap.
#pragma once

#include "rung/device/activate.hpp"
#include "rung/device/load.hpp"

namespace rung::inline RUNG_TARGET {

template <class Result, class Real, int N>
__device__ __forceinline__ void activate_all(Activation activation, Pack<Real, N>& values) {
  const auto apply = [&](Activation known) {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = activate<Result>(known, values[i]);
  };
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return apply(Activation::relu);
    case Activation::gelu:
      return apply(Activation::gelu);
    case Activation::sigmoid:
      return apply(Activation::sigmoid);
    case Activation::tanh:
      return apply(Activation::tanh);
  }
}

}  // namespace rung::inline RUNG_TARGET
