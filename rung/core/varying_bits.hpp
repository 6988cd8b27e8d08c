// SPDX-License-Identifier: Apache-2.0
// Rungs whose results may differ in their last bits from run to run.
#pragma once

#include "rung/core/operator.hpp"

namespace rung {

/// Marks a rung that adds floating numbers by atomics, whose order changes from run to run. `check`
/// holds each of its results against the reference, and does not compare two runs. The rung is a
/// teaching rung, which no call chooses: what a call returns repeats. Below `self`:
///   const VaryingBits varies{self.info};
class RUNG_API VaryingBits {
 public:
  explicit VaryingBits(const RungInfo& rung) noexcept;
  VaryingBits(const VaryingBits&) = delete;
  VaryingBits& operator=(const VaryingBits&) = delete;

  static bool of(const RungInfo& rung) noexcept;

 private:
  const RungInfo& rung_;
  const VaryingBits* next_;
};

}  // namespace rung
