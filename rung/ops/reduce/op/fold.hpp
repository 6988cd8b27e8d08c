// SPDX-License-Identifier: Apache-2.0
// Folds of reduce's operations, for CPU and CUDA rungs: a mean is a sum and a norm a sum of squares
// until the end; an index search finds the position of the extreme.
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
