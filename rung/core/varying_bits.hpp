// SPDX-License-Identifier: Apache-2.0
// Rungs whose results may differ in their last bits from run to run.
#pragma once

#include "rung/core/operator.hpp"

namespace rung {

/// Marks a rung that sums floating-point numbers by atomics, in an order that changes from run to
/// run. `check` compares each result with the reference but does not compare two runs. The rung
/// must be a teaching rung, which no call chooses, so that results of calls repeat. Declare below
/// `self`:
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
