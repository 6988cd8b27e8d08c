// SPDX-License-Identifier: Apache-2.0
// Inputs shared by the subcommands of `rung reuse`.
#pragma once

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {

CommandSpec::Action setup_reuse_both(Parser app);
CommandSpec::Action setup_reuse_stencil(Parser app);

/// Returns the input --n: matrices are n x n.
inline InputSpec matrix_size_input() {
  return {
      .name = "--n", .help = "the matrices are n x n", .symbol = "n", .accepted = {.most = 1e7}};
}
/// Returns the input --element: bytes per element.
inline InputSpec element_size_input() {
  return {.name = "--element",
          .unit = Unit::bytes,
          .help = "bytes per element",
          .fallback = "4",
          .accepted = {.least = 1, .most = 64}};
}

}  // namespace rung::workbench
