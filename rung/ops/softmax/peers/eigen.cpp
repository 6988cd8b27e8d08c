// SPDX-License-Identifier: Apache-2.0
// softmax / eigen: the peer Eigen, softmax in its expressions.
//
// Kernels  chosen when Eigen is compiled, so there is a module for each instruction set beside
//          librung (see peer_eigen/module.hpp); the one that our own rungs would use is loaded.
// Threads  the rows divided by OpenMP, as its users do; Eigen itself would use one.
// Limits   f32 and f64, contiguous rows at equal distances; finite values, as its answers to
//          infinities and NaN are not ours.
#include <limits>
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/softmax/peers/eigen/module.hpp"
#include "rung/ops/softmax/shared/value_range.hpp"
#include "rung/peers/module.hpp"

namespace rung {
namespace {

struct Eigen {
  DynamicLibrary library{"RUNG_PEER_SOFTMAX_EIGEN", {peers::isa_module_path("softmax_eigen")}};
  softmax_eigen::RunF32* run_f32;
  softmax_eigen::RunF64* run_f64;
  softmax_eigen::Version* version;

  Eigen() {
    library.require(run_f32, "rung_softmax_eigen_f32");
    library.require(run_f64, "rung_softmax_eigen_f64");
    library.require(version, "rung_softmax_eigen_version");
  }
};

Eigen& eigen() {
  static Eigen loaded;
  return loaded;
}

Support present() {
  if (const Support here = peers::isa_modules_present(); !here) return here;
  return eigen().library.present();
}

std::string about() {
  const int version = eigen().version();
  return "Eigen " + peers::version_text(version) + ", " + peers::module_isa() + ", OpenMP";
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.y.dtype != args.x.dtype || (args.x.dtype != DType::f32 && args.x.dtype != DType::f64)) {
    return unsupported("the peer Eigen does f32 and f64");
  }
  if (!args.rows.are_contiguous() || args.rows.others.rank > 1) {
    return unsupported("rows must be contiguous and equally far apart");
  }
  if (!softmax_values::are_below(std::numeric_limits<double>::infinity(), args, context)) {
    return unsupported("answers infinities and NaN otherwise than we do");
  }
  return supported;
}

template <class T>
void run_as(const Softmax::Args& args, int threads,
            void (*function)(const softmax_eigen::Call<T>*)) {
  const auto& strides = args.rows.others.strides;
  const bool several = args.rows.others.rank == 1;
  const softmax_eigen::Call<T> call{args.count(),
                                    args.length(),
                                    static_cast<const T*>(args.x.data),
                                    several ? strides[0][0] : 0,
                                    static_cast<T*>(args.y.data),
                                    several ? strides[1][0] : 0,
                                    static_cast<T>(args.scale),
                                    args.log,
                                    threads};
  function(&call);
}

void run(const Softmax::Args& args, Context& context) {
  if (args.x.dtype == DType::f32) {
    run_as(args, context.threads(), eigen().run_f32);
  } else {
    run_as(args, context.threads(), eigen().run_f64);
  }
}

const Rung<Softmax> self{{.name = "eigen",
                          .peer = true,
                          .about = about,
                          .present = present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
