// SPDX-License-Identifier: Apache-2.0
// C interface of librung_peer_elementwise_*.so, which the peers eigen, std and std_parallel load.
// The code behind them is templates, compiled once per instruction set. Each instruction set has
// its own module, with all other names hidden, so that the linker merges no instances.
#pragma once

#include <cstdint>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::peer_elementwise {

/// Arguments of z[i] = f(x[i], y[i], w[i]), contiguous.
template <class T>
struct ElementwisePeerArguments {
  ElementwiseFunction function;
  T alpha;
  const T* x;
  const T* y;
  const T* w;
  T* z;
  std::int64_t count;
  int threads;
};

/// Type of the modules' symbols, extern "C": rung_elementwise_NAME_f32 and _f64, where NAME is the
/// peer's.
template <class T>
using Run = void(const ElementwisePeerArguments<T>* call);

}  // namespace rung::peer_elementwise

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
