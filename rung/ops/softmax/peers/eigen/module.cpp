// SPDX-License-Identifier: Apache-2.0
// softmax in Eigen's expressions, as its users write it, behind the C interface of module.hpp;
// compiled once an instruction set. Rows are divided among OpenMP's threads, which Eigen does not
// do for element-wise work: whoever calls it for speed would.
#include "rung/ops/softmax/peers/eigen/module.hpp"

#include <Eigen/Core>

namespace rung::softmax_eigen {
namespace {

template <class T>
using Input = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using Output = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;

template <class T>
void row(const Call<T>& call, std::int64_t r) {
  const Input<T> x(call.x + r * call.x_step, call.length);
  Output<T> y(call.y + r * call.y_step, call.length);
  const T maximum = x.maxCoeff();
  if (call.log) {
    y = (x - maximum) * call.scale;
    y -= std::log(y.exp().sum());
  } else {
    y = ((x - maximum) * call.scale).exp();
    y *= 1 / y.sum();
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
}  // namespace rung::softmax_eigen

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API void rung_softmax_eigen_f32(const rung::softmax_eigen::Call<float>* call) {
  rung::softmax_eigen::run(*call);
}
RUNG_MODULE_API void rung_softmax_eigen_f64(const rung::softmax_eigen::Call<double>* call) {
  rung::softmax_eigen::run(*call);
}
RUNG_MODULE_API int rung_softmax_eigen_version() {
  return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
}
