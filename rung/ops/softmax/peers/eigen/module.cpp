// SPDX-License-Identifier: Apache-2.0
// softmax in Eigen expressions, as a user of Eigen writes it.
#include "rung/ops/softmax/peers/eigen/module.hpp"
#include "rung/peers/eigen_rows_module.hpp"

namespace rung::softmax_eigen {
namespace {
using peers::EigenInput;
using peers::EigenOutput;

template <class T>
void row(const EigenSoftmaxArguments<T>& call, std::int64_t r) {
  const EigenInput<T> x(call.x + r * call.x_step, call.length);
  EigenOutput<T> y(call.y + r * call.y_step, call.length);
  const T maximum = x.maxCoeff();
  if (call.log) {
    y = (x - maximum) * call.scale;
    y -= std::log(y.exp().sum());
  } else {
    y = ((x - maximum) * call.scale).exp();
    y *= 1 / y.sum();
  }
}

}  // namespace
}  // namespace rung::softmax_eigen

RUNG_EIGEN_ROWS(rung::softmax_eigen, EigenSoftmaxArguments)
