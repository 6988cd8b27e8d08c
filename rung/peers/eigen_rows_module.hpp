// SPDX-License-Identifier: Apache-2.0
// Exports of the modules of Eigen expressions over rows (eigen_rows.hpp). Rows are divided among
// OpenMP threads, because Eigen does not parallelize element-wise work.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace rung::peers {

template <class T>
using EigenInput = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;
template <class T>
using EigenOutput = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;

/// Calls row(call, r) for each of call.rows rows; `row` is a template argument, so that it is
/// inlined.
template <auto row, class Arguments>
void for_eigen_rows(const Arguments& call) {
  if (call.threads == 1) {
    for (std::int64_t r = 0; r < call.rows; ++r) row(call, r);
    return;
  }
#pragma omp parallel for num_threads(call.threads) schedule(static)
  for (std::int64_t r = 0; r < call.rows; ++r) row(call, r);
}

}  // namespace rung::peers

#define RUNG_MODULE_API extern "C" __attribute__((visibility("default")))
/// Exports row<T>(const arguments<T>&, std::int64_t) of a namespace. A macro, because extern "C"
/// names have no namespace.
#define RUNG_EIGEN_ROWS(space, arguments)                                                 \
  RUNG_MODULE_API void rung_eigen_f32(const space::arguments<float>* call) {              \
    rung::peers::for_eigen_rows<space::row<float>>(*call);                                \
  }                                                                                       \
  RUNG_MODULE_API void rung_eigen_f64(const space::arguments<double>* call) {             \
    rung::peers::for_eigen_rows<space::row<double>>(*call);                               \
  }                                                                                       \
  RUNG_MODULE_API int rung_eigen_version() {                                              \
    return EIGEN_WORLD_VERSION * 10000 + EIGEN_MAJOR_VERSION * 100 + EIGEN_MINOR_VERSION; \
  }
