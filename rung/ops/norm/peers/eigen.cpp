// SPDX-License-Identifier: Apache-2.0
// norm / eigen: the peer Eigen, norm in its expressions.
//
// Kernels  chosen when Eigen is compiled, so there is a module for each instruction set beside
//          librung (see peer_eigen/module.hpp); the one that our own rungs would use is loaded.
// Limits   f32 and f64, contiguous rows at equal distances, gamma and beta of the same type; no
//          residual, no statistics.
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/peers/eigen/module.hpp"
#include "rung/ops/norm/shared/lines.hpp"
#include "rung/peers/module.hpp"

namespace rung {
namespace {

struct Eigen {
  DynamicLibrary library{"RUNG_PEER_NORM_EIGEN", {peers::isa_module_path("norm_eigen")}};
  norm_eigen::RunF32* run_f32;
  norm_eigen::RunF64* run_f64;
  norm_eigen::Version* version;

  Eigen() {
    library.require(run_f32, "rung_norm_eigen_f32");
    library.require(run_f64, "rung_norm_eigen_f64");
    library.require(version, "rung_norm_eigen_version");
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
void run_as(const Norm::Args& args, int threads, void (*function)(const norm_eigen::Call<T>*)) {
  const norm_lines::Lines lines = norm_lines::lines_of(args);
  const auto step = [&](int tensor) {
    return lines.rows.rank == 1 ? lines.rows.strides[tensor][0] : 0;
  };
  const norm_eigen::Call<T> call{lines.rows.size(),
                                 lines.columns.size(),
                                 static_cast<const T*>(args.x.data),
                                 step(norm_lines::row_x),
                                 static_cast<T*>(args.y.data),
                                 step(norm_lines::row_y),
                                 static_cast<const T*>(args.gamma.data),
                                 static_cast<const T*>(args.beta.data),
                                 static_cast<T>(args.epsilon),
                                 args.kind == NormKind::rms,
                                 threads};
  function(&call);
}

void run(const Norm::Args& args, Context& context) {
  if (args.x.dtype == DType::f32) {
    run_as(args, context.threads(), eigen().run_f32);
  } else {
    run_as(args, context.threads(), eigen().run_f64);
  }
}

const Rung<Norm> self{{.name = "eigen",
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
