// SPDX-License-Identifier: Apache-2.0
// norm / eigen: norm in Eigen expressions as a peer.
//
// Limits   f32 and f64, contiguous rows at equal distances, gamma and beta of the same type; no
//          residual, no statistics.
#include <string>

#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/peers/eigen/module.hpp"
#include "rung/ops/norm/shared/lines.hpp"
#include "rung/peers/eigen_rows.hpp"

namespace rung {
namespace {

using Module = peers::EigenRows<norm_eigen::EigenNormArguments>;

const Module& eigen() {
  static const Module loaded("RUNG_PEER_NORM_EIGEN", "norm_eigen");
  return loaded;
}

Support present() { return eigen().present(); }

std::string about() { return eigen().about(); }

Support supports(const Norm::Args& args, const Context&) {
  if (args.x.empty()) return unsupported("nothing to do");
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::f64) {
    return unsupported("the peer Eigen does f32 and f64");
  }
  if (args.residual.data != nullptr) return unsupported("no residual");
  if (args.mean.data != nullptr || args.rstd.data != nullptr) return unsupported("no statistics");
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  if (!lines.contiguous_columns() || lines.rows.rank > 1) {
    return unsupported("rows must be contiguous and equally far apart");
  }
  return supported;
}

template <class T>
void run_as(const Norm::Args& args, int threads) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const auto step = [&](int tensor) {
    return lines.rows.rank == 1 ? lines.rows.strides[tensor][0] : 0;
  };
  eigen().run(norm_eigen::EigenNormArguments<T>{
      lines.rows.size(), lines.columns.size(), static_cast<const T*>(args.x.data),
      step(norm_lines::row_x), static_cast<T*>(args.y.data), step(norm_lines::row_y),
      static_cast<const T*>(args.gamma.data), static_cast<const T*>(args.beta.data),
      static_cast<T>(args.epsilon), args.kind == NormKind::rms, threads});
}

void run(const Norm::Args& args, Context& context) {
  visit<float, double>(args.x.dtype, [&]<class T>() { run_as<T>(args, context.threads()); });
}

const Rung<Norm> self{{.name = "eigen",
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
