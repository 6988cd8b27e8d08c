// SPDX-License-Identifier: Apache-2.0
// softmax_backward / eigen: the formula in Eigen expressions as a peer.
//
// Threads  rows are split by OpenMP, as Eigen's users do; Eigen itself would use one thread.
// Limits   f32 and f64, contiguous rows at equal distances; finite values, because Eigen's results
//          for infinities and NaN differ from the contract.
#include <limits>
#include <string>

#include "rung/ops/softmax/shared/value_range.hpp"
#include "rung/ops/softmax_backward/op/softmax_backward.hpp"
#include "rung/ops/softmax_backward/peers/eigen/module.hpp"
#include "rung/peers/eigen_rows.hpp"

namespace rung {
namespace {

using Module = peers::EigenRows<softmax_backward_eigen::EigenSoftmaxBackwardArguments>;

const Module& eigen() {
  static const Module loaded("RUNG_PEER_SOFTMAX_BACKWARD_EIGEN", "softmax_backward_eigen");
  return loaded;
}

Support present() { return eigen().present(); }

std::string about() { return eigen().about(); }

Support supports(const SoftmaxBackward::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.dx.dtype != args.y.dtype || (args.y.dtype != DType::f32 && args.y.dtype != DType::f64)) {
    return unsupported("the peer Eigen does f32 and f64");
  }
  if (!args.rows.are_contiguous() || args.rows.others.rank > 1) {
    return unsupported("rows must be contiguous and equally far apart");
  }
  if (!softmax_values::are_below(std::numeric_limits<double>::infinity(), args.scale, args.y,
                                 context)) {
    return unsupported("answers infinities and NaN otherwise than we do");
  }
  return supported;
}

template <class T>
void run_as(const SoftmaxBackward::Args& args, int threads) {
  const auto& strides = args.rows.others.strides;
  const bool several = args.rows.others.rank == 1;
  eigen().run(softmax_backward_eigen::EigenSoftmaxBackwardArguments<T>{
      args.count(), args.length(), static_cast<const T*>(args.y.data), several ? strides[0][0] : 0,
      static_cast<const T*>(args.dy.data), several ? strides[1][0] : 0,
      static_cast<T*>(args.dx.data), several ? strides[2][0] : 0, static_cast<T>(args.scale),
      args.log, threads});
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  visit<float, double>(args.y.dtype, [&]<class T>() { run_as<T>(args, context.threads()); });
}

const Rung<SoftmaxBackward> self{{.name = "eigen",
                                  .peer = true,
                                  .about = about,
                                  .present = present,
                                  .supports = supports,
                                  .run = run}};

}  // namespace
}  // namespace rung
