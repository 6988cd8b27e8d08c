// SPDX-License-Identifier: Apache-2.0
// rung emulate in a build without the simulated GPU: says how to get one.
#include "rung/workbench/command.hpp"

namespace rung::workbench {
namespace {

CommandSpec::Action setup(Parser app) {
  app.leave_unknown();
  app.purpose(
      "Runs an ordinary CUDA C++ program on the simulated GPU. This build has none: configure it "
      "with -DRUNG_SIMT=ON and build again.");
  app.example("cmake -S . -B build -DRUNG_SIMT=ON && cmake --build build",
              "from the folder of rung's sources");
  app.exit_codes({{exit_not_here, "this build has no simulated GPU"}});
  return [app]() -> int {
    throw Error(ErrorCode::not_available,
                "emulate: this build has no simulated GPU; configure it with -DRUNG_SIMT=ON and "
                "build again");
  };
}

const Command self{{.name = "emulate",
                    .order = 60,
                    .summary = "run a CUDA program on the simulated GPU (not in this build)",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
