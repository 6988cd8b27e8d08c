// SPDX-License-Identifier: Apache-2.0
// elementwise: Runs of the right element size.
#pragma once

#include "rung/ops/elementwise/cpu/detail/runs.hpp"

namespace rung::elementwise_cpu {

/// Calls use(runs).
template <class Use>
void with_runs(const Elementwise::Args& args, bool streaming, Use use) {
  switch (size_of(args.z.dtype)) {
    case 1:
      return use(Runs<std::uint8_t>(args, streaming));
    case 2:
      return use(Runs<std::uint16_t>(args, streaming));
    case 4:
      return use(Runs<std::uint32_t>(args, streaming));
    default:
      return use(Runs<std::uint64_t>(args, streaming));
  }
}

}  // namespace rung::elementwise_cpu
