// SPDX-License-Identifier: Apache-2.0
// Function objects of <cuda/functional> that CUB uses: minimum, maximum, plus and others. Including
// the C++ library's <functional> would take longer to compile than all of CUB.
#pragma once

#include <bits/stl_function.h>

#include "rung_cuda/words.h"

namespace cuda::std {
using namespace ::std;
}
namespace cuda {

template <class T = void>
struct maximum {
  __host__ __device__ constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <>
struct maximum<void> {
  template <class T, class U>
  __host__ __device__ constexpr auto operator()(const T& a, const U& b) const {
    return a < b ? b : a;
  }
};
template <class T = void>
struct minimum {
  __host__ __device__ constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct minimum<void> {
  template <class T, class U>
  __host__ __device__ constexpr auto operator()(const T& a, const U& b) const {
    return b < a ? b : a;
  }
};

}  // namespace cuda
