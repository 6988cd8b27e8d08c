// SPDX-License-Identifier: Apache-2.0
// norm in Eigen expressions, as a user of Eigen writes it.
#include <cmath>

#include "rung/ops/norm/peers/eigen/module.hpp"
#include "rung/peers/eigen_rows_module.hpp"

namespace rung::norm_eigen {
namespace {
using peers::EigenInput;
using peers::EigenOutput;

template <class T>
void row(const EigenNormArguments<T>& call, std::int64_t r) {
  const EigenInput<T> x(call.x + r * call.x_step, call.length);
  EigenOutput<T> y(call.y + r * call.y_step, call.length);
  const T mean = call.rms ? T{0} : x.mean();
  const T rstd = 1 / std::sqrt((x - mean).square().mean() + call.epsilon);
  const EigenInput<T> gamma(call.gamma, call.length);
  const EigenInput<T> beta(call.beta, call.length);
  if (call.gamma != nullptr && call.beta != nullptr) {
    y = (x - mean) * rstd * gamma + beta;
  } else if (call.gamma != nullptr) {
    y = (x - mean) * rstd * gamma;
  } else if (call.beta != nullptr) {
    y = (x - mean) * rstd + beta;
  } else {
    y = (x - mean) * rstd;
  }
}

}  // namespace
}  // namespace rung::norm_eigen

RUNG_EIGEN_ROWS(rung::norm_eigen, EigenNormArguments)
