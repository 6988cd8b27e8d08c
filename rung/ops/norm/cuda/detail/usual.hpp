// SPDX-License-Identifier: Apache-2.0
// Common argument combinations of norm, for which on-chip kernels are compiled without branches.
#pragma once

#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

/// Specialization of a kernel: any arguments, or the common ones: rows of one axis, no residual,
/// weights of x's type, gamma alone or gamma and beta. Specialized kernels have no branches for
/// other cases.
enum class Usual { no, gamma, gamma_and_beta };

template <class T>
Usual usual(const NormArguments<T>& call) {
  if (call.lines.rows.rank > 1 || call.residual != nullptr) return Usual::no;
  if (call.gamma == nullptr || call.wide_weights) return Usual::no;
  return call.beta != nullptr ? Usual::gamma_and_beta : Usual::gamma;
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
