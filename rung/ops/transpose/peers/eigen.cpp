// SPDX-License-Identifier: Apache-2.0
// transpose / eigen: the peer Eigen, the assignment of a mapped matrix's transpose.
//
// Kernels  compiled per instruction set in modules beside librung (see peer_eigen/module.hpp); the
//          module for the instruction set that our own rungs use is loaded.
// Threads  one: Eigen's assignments are single-threaded.
// Limits   elements of 1, 2, 4 and 8 bytes.
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/transpose/peers/eigen/module.hpp"
#include "rung/ops/transpose/peers/matrices.hpp"
#include "rung/peers/module.hpp"

namespace rung {
namespace {

struct Eigen {
  DynamicLibrary library{"RUNG_PEER_TRANSPOSE_EIGEN", {peers::isa_module_path("transpose_eigen")}};
  peer_eigen_transpose::Run* run;
  peer_eigen_transpose::Version* version;

  Eigen() {
    library.require(run, "rung_eigen_transpose");
    library.require(version, "rung_eigen_version");
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
  return "Eigen " + peers::version_text(eigen().version()) + ", " + peers::module_isa() +
         ", one thread";
}

Support supports(const Transpose::Args& args, const Context&) {
  if (args.moves.element_bytes > 8) return unsupported("elements of 16 bytes");
  return transpose_peer::supports_matrices(args);
}

void run(const Transpose::Args& args, Context&) {
  transpose_peer::for_each_matrix(args, [&](const transpose_peer::Matrix& matrix) {
    const peer_eigen_transpose::EigenTransposeArguments call{matrix.x,
                                                             matrix.y,
                                                             matrix.rows,
                                                             matrix.columns,
                                                             matrix.x_row,
                                                             matrix.y_row,
                                                             args.moves.element_bytes};
    eigen().run(&call);
  });
}

const Rung<Transpose> self{{.name = "eigen",
                            .peer = true,
                            .about = about,
                            .present = present,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
