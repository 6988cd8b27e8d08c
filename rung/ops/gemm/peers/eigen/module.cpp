// SPDX-License-Identifier: Apache-2.0
// Eigen's matrix product behind the C interface of module.hpp; compiled once per instruction set.
#include "rung/ops/gemm/peers/eigen/module.hpp"

#include <Eigen/Core>

namespace rung::peer_eigen {
namespace {

template <class T, int Order>
using Operand = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Order>, 0,
                           Eigen::OuterStride<>>;
template <class T>
using Result = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                          Eigen::OuterStride<>>;
template <class T>
using InputVector = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<>>;
template <class T>
using ResultVector = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<>>;

/// Assigns with noalias(): without it Eigen computes into a temporary first.
template <class T, class C, class Product>
void assign(T beta, C& c, const Product& product) {
  if (beta == T{0}) {
    c.noalias() = product;
    return;
  }
  if (beta != T{1}) c *= beta;
  c.noalias() += product;
}

template <class T, int OrderA, int OrderB>
void multiply(const EigenGemmArguments<T>& call) {
  const Operand<T, OrderA> a(call.a, call.m, call.k, Eigen::OuterStride<>(call.a_leading));
  if (call.n == 1) {  // a vector type selects Eigen's matrix-vector kernels
    const InputVector<T> x(call.b, call.k,
                           Eigen::InnerStride<>(call.b_transposed ? 1 : call.b_leading));
    ResultVector<T> y(call.c, call.m, Eigen::InnerStride<>(call.c_leading));
    assign(call.beta, y, call.alpha * a * x);
    return;
  }
  const Operand<T, OrderB> b(call.b, call.k, call.n, Eigen::OuterStride<>(call.b_leading));
  Result<T> c(call.c, call.m, call.n, Eigen::OuterStride<>(call.c_leading));
  assign(call.beta, c, call.alpha * a * b);
}

template <class T>
bool run(const EigenGemmArguments<T>& call) {
  constexpr int rows = Eigen::RowMajor;
  constexpr int columns = Eigen::ColMajor;
  try {
    if (call.a_transposed) {
      call.b_transposed ? multiply<T, columns, columns>(call) : multiply<T, columns, rows>(call);
    } else {
      call.b_transposed ? multiply<T, rows, columns>(call) : multiply<T, rows, rows>(call);
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace
}  // namespace rung::peer_eigen

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
RUNG_MODULE_API void rung_eigen_set_threads(int threads) { Eigen::setNbThreads(threads); }
RUNG_MODULE_API bool rung_eigen_f32(const rung::peer_eigen::EigenGemmArguments<float>* call) {
  return rung::peer_eigen::run(*call);
}
RUNG_MODULE_API bool rung_eigen_f64(const rung::peer_eigen::EigenGemmArguments<double>* call) {
  return rung::peer_eigen::run(*call);
}
RUNG_MODULE_API int rung_eigen_version() {
  return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION;
}
