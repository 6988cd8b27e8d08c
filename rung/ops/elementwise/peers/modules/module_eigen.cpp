// SPDX-License-Identifier: Apache-2.0
// Eigen's array expressions, on one thread.
#include <Eigen/Core>

#include "rung/ops/elementwise/peers/modules/module.hpp"

namespace rung::peer_elementwise {
namespace {

template <class T>
void run(const ElementwisePeerArguments<T>& c) {
  using enum ElementwiseFunction;
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  const Eigen::Map<const Array> x(c.x, c.count);
  const Eigen::Map<const Array> y(c.y, c.count);
  const Eigen::Map<const Array> w(c.w, c.count);
  Eigen::Map<Array> z(c.z, c.count);
  switch (c.function) {
    case add:
      z = x + y;
      break;
    case sub:
      z = x - y;
      break;
    case mul:
      z = x * y;
      break;
    case div:
      z = x / y;
      break;
    case axpy:
      z = c.alpha * x + y;
      break;
    case fma:
      z = x * y + w;
      break;
    case relu:
      z = x.max(T{0});
      break;
    case sigmoid:
      z = x.logistic();
      break;
    case tanh:
      z = x.tanh();
      break;
    case exp:
      z = x.exp();
      break;
    case silu:
      z = x / (1 + (-x).exp());
      break;
    case sign:
      z = x.sign();
      break;
    case gelu:  // no error function without Eigen's unsupported modules
      break;
  }
}

}  // namespace
}  // namespace rung::peer_elementwise

RUNG_MODULE_API void rung_elementwise_eigen_f32(
    const rung::peer_elementwise::ElementwisePeerArguments<float>* call) {
  rung::peer_elementwise::run(*call);
}
RUNG_MODULE_API void rung_elementwise_eigen_f64(
    const rung::peer_elementwise::ElementwisePeerArguments<double>* call) {
  rung::peer_elementwise::run(*call);
}
