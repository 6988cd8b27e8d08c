// SPDX-License-Identifier: Apache-2.0
// norm in Eigen's expressions, as its users write it, behind the C interface of module.hpp;
// compiled once an instruction set. Rows are divided among OpenMP's threads, which Eigen does not
// do for element-wise work.
#include "rung/ops/norm/peers/eigen/module.hpp"

#include <Eigen/Core>

#include <cmath>

namespace rung::norm_eigen {
namespace {

template <class T>
using Input = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using Output = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;

template <class T>
void row(const Call<T>& call, std::int64_t r) {
  const Input<T> x(call.x + r * call.x_step, call.length);
  Output<T> y(call.y + r * call.y_step, call.length);
  const T mean = call.rms ? T{0} : x.mean();
  const T rstd = 1 / std::sqrt((x - mean).square().mean() + call.epsilon);
  const Input<T> gamma(call.gamma, call.length);
  const Input<T> beta(call.beta, call.length);
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

template <class T>
void run(const Call<T>& call) {
  if (call.threads == 1) {
    for (std::int64_t r = 0; r < call.rows; ++r) row(call, r);
    return;
  }
#pragma omp parallel for num_threads(call.threads) schedule(static)
  for (std::int64_t r = 0; r < call.rows; ++r) row(call, r);
}

}  // namespace
}  // namespace rung::norm_eigen

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API void rung_norm_eigen_f32(const rung::norm_eigen::Call<float>* call) {
  rung::norm_eigen::run(*call);
}
RUNG_MODULE_API void rung_norm_eigen_f64(const rung::norm_eigen::Call<double>* call) {
  rung::norm_eigen::run(*call);
}
RUNG_MODULE_API int rung_norm_eigen_version() {
  return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
}
