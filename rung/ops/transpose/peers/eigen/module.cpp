// SPDX-License-Identifier: Apache-2.0
// Eigen's transpose behind the C interface of module.hpp; compiled once per instruction set.
#include "rung/ops/transpose/peers/eigen/module.hpp"

#include <Eigen/Core>

namespace rung::peer_eigen_transpose {
namespace {

/// Transposes as Eigen users would, with floating types if the size has one, because Eigen
/// vectorizes their assignment.
template <class T>
void run(const EigenTransposeArguments& call) {
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix, 0, Eigen::OuterStride<>> x(
      static_cast<const T*>(call.x), call.rows, call.columns, Eigen::OuterStride<>(call.x_row));
  Eigen::Map<Matrix, 0, Eigen::OuterStride<>> y(static_cast<T*>(call.y), call.columns, call.rows,
                                                Eigen::OuterStride<>(call.y_row));
  y.noalias() = x.transpose();
}

}  // namespace
}  // namespace rung::peer_eigen_transpose

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API void rung_eigen_transpose(
    const rung::peer_eigen_transpose::EigenTransposeArguments* call) {
  using namespace rung::peer_eigen_transpose;
  switch (call->element_bytes) {
    case 1:
      return run<std::uint8_t>(*call);
    case 2:
      return run<std::uint16_t>(*call);
    case 4:
      return run<float>(*call);
    default:
      return run<double>(*call);
  }
}
RUNG_MODULE_API int rung_eigen_version() {
  return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
}
