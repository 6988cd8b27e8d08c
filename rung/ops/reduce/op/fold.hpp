// SPDX-License-Identifier: Apache-2.0
// The folds behind reduce's operations, for CPU and CUDA rungs: a mean is a sum and a norm a sum of
// squares until the end; an index is searched for as the extreme that it belongs to.
#pragma once

#include "rung/ops/reduce/op/reduce.hpp"

namespace rung::reduce_fold {

enum class Fold : std::uint8_t { sum, squares, product, least, greatest };

inline Fold fold_of(Reduction operation) {
  switch (operation) {
    case Reduction::product:
      return Fold::product;
    case Reduction::norm:
      return Fold::squares;
    case Reduction::min:
    case Reduction::argmin:
      return Fold::least;
    case Reduction::max:
    case Reduction::argmax:
      return Fold::greatest;
    default:
      return Fold::sum;
  }
}

}  // namespace rung::reduce_fold
