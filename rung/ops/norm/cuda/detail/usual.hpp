// SPDX-License-Identifier: Apache-2.0
// The usual call of norm, for which kernels that keep rows on chip are compiled without branches.
#pragma once

#include "rung/ops/norm/shared/cuda/norm.hpp"

namespace rung::norm_cuda::inline RUNG_TARGET {

/// Specialization of a kernel: anything, or the usual: rows of one axis, no residual, weights of
/// x's type, gamma alone or gamma and beta. A specialized kernel has no branches for the rest.
enum class Usual { no, gamma, gamma_and_beta };

template <class T>
Usual usual(const Call<T>& call) {
  if (call.lines.rows.rank > 1 || call.residual != nullptr) return Usual::no;
  if (call.gamma == nullptr || call.wide_weights) return Usual::no;
  return call.beta != nullptr ? Usual::gamma_and_beta : Usual::gamma;
}

}  // namespace rung::norm_cuda::inline RUNG_TARGET
