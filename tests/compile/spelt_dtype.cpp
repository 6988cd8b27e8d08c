// SPDX-License-Identifier: Apache-2.0
// A typed pointer with an explicit DType: the compiler checks that they agree.
#include "rung/core/tensor_ref.hpp"

rung::ConstTensorRef matrix(const double* x, rung::DType dtype) {
#if CASE == 0
  static_cast<void>(dtype);
  return {x, rung::DType::f64, {3, 4}};
#elif CASE == 1
  static_cast<void>(dtype);
  return {x, rung::DType::f32, {3, 4}};
#else
  return {x, dtype, {3, 4}};
#endif
}
