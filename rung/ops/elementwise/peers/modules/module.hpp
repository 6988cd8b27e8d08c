// SPDX-License-Identifier: Apache-2.0
// The C interface of librung_peer_elementwise_*.so: what the peers eigen, std and std_parallel
// load. Their code is templates that take the compiler's instruction set: a module for each, with
// all other names hidden, so that the linker merges none of them with another's.
#pragma once

#include <cstdint>

#include "rung/ops/elementwise/op/elementwise.hpp"

namespace rung::peer_elementwise {

/// z[i] = f(x[i], y[i], w[i]), contiguous.
template <class T>
struct Call {
  ElementwiseFunction function;
  T alpha;
  const T* x;
  const T* y;
  const T* w;
  T* z;
  std::int64_t count;
  int threads;
};

/// The modules' symbols, extern "C": rung_elementwise_NAME_f32 and _f64, for the names of the
/// peers.
template <class T>
using Run = void(const Call<T>* call);

}  // namespace rung::peer_elementwise

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
