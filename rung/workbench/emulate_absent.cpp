// SPDX-License-Identifier: Apache-2.0
// rung emulate and rung nvcc in a build without the simulated GPU: print how to get one.
#include "rung/workbench/command.hpp"

namespace rung::workbench {
namespace {

CommandSpec::Action setup(Parser app) {
  app.leave_unknown();
  app.purpose(
      "Runs or builds ordinary CUDA C++ programs for the simulated GPU. This build has none: "
      "configure it with -DRUNG_SIMT=ON and build again.");
  app.example("cmake -S . -B build -DRUNG_SIMT=ON && cmake --build build",
              "from the folder of rung's sources");
  app.exit_codes({{exit_not_here, "this build has no simulated GPU"}});
  return [app]() -> int {
    throw Error(
        ErrorCode::not_available,
        "this build has no simulated GPU; configure it with -DRUNG_SIMT=ON and build again");
  };
}

const Command self{{.name = "emulate",
                    .order = 60,
                    .summary = "run a CUDA program on the simulated GPU (not in this build)",
                    .setup = setup}};
const Command nvcc{{.name = "nvcc",
                    .order = 61,
                    .summary = "build CUDA projects for the simulated GPU (not in this build)",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
