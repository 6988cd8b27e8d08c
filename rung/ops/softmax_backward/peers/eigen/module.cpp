// SPDX-License-Identifier: Apache-2.0
// The gradient of softmax in Eigen expressions, as a user of Eigen writes it.
#include "rung/ops/softmax_backward/peers/eigen/module.hpp"
#include "rung/peers/eigen_rows_module.hpp"

namespace rung::softmax_backward_eigen {
namespace {
using peers::EigenInput;
using peers::EigenOutput;

template <class T>
void row(const EigenSoftmaxBackwardArguments<T>& call, std::int64_t r) {
  const EigenInput<T> y(call.y + r * call.y_step, call.length);
  const EigenInput<T> dy(call.dy + r * call.dy_step, call.length);
  EigenOutput<T> dx(call.dx + r * call.dx_step, call.length);
  if (call.log) {
    const T sum = dy.sum();
    dx = call.scale * (dy - y.exp() * sum);
  } else {
    const T sum = (dy * y).sum();
    dx = call.scale * ((dy - sum) * y);
  }
}

}  // namespace
}  // namespace rung::softmax_backward_eigen

RUNG_EIGEN_ROWS(rung::softmax_backward_eigen, EigenSoftmaxBackwardArguments)
