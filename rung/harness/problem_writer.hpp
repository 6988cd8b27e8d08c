// SPDX-License-Identifier: Apache-2.0
// ProblemWriter: builds the problem that describes a call, which is the inverse of an operator's
// make():
//
//   return ProblemWriter(call.x.dtype, call.x.shape)
//       .integer("axis", call.axis, -1)
//       .flag("log", call.log)
//       .number("scale", call.scale, 1.0)
//       .problem();
//
// It writes options in the order in which it is called, and only those that differ from their
// defaults. It throws for no value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rung/core/dtype.hpp"
#include "rung/core/export.hpp"
#include "rung/core/extents.hpp"
#include "rung/core/per_axis.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/harness/problem.hpp"

namespace rung {

class RUNG_API ProblemWriter {
 public:
  /// Takes the extents of a problem. A scalar becomes one element, as text has one extent at least.
  ProblemWriter(DType dtype, const Extents& extents);

  /// Writes a name without a value if `given`.
  ProblemWriter& flag(std::string_view name, bool given);
  ProblemWriter& text(std::string_view name, std::string_view value, std::string_view otherwise);
  ProblemWriter& dtype(std::string_view name, DType value, DType otherwise);
  ProblemWriter& integer(std::string_view name, std::int64_t value, std::int64_t otherwise);
  /// Writes the fewest digits that read back as `value`. Leaves out what is not finite, which no
  /// problem can state.
  ProblemWriter& number(std::string_view name, double value, double otherwise);
  /// Writes "3x5"; nothing for an empty list.
  ProblemWriter& extents(std::string_view name, const Extents& list);
  /// Writes axes of a tensor of `rank` axes, a digit each, "02", or one from the end, "-1"; nothing
  /// for an empty list.
  ProblemWriter& axes(std::string_view name, const Extents& list, int rank);
  /// Writes the numbers of an image's axes, "3x2", or one where all are equal, "3".
  ProblemWriter& per_axis(std::string_view name, const PerAxis& numbers, int axes, int otherwise);
  /// Writes the word that `words`, pairs of a word and an enumerator, has for an enumerator.
  template <class Words, class Enum>
  ProblemWriter& word(const Words& words, Enum value, Enum otherwise) {
    for (const auto& [name, one] : words) flag(name, one == value && value != otherwise);
    return *this;
  }

  [[nodiscard]] const Problem& problem() const { return problem_; }

 private:
  ProblemWriter& option(std::string_view name, std::string value);

  Problem problem_;
};

/// Returns one number for all axes where the first `axes` are equal, so that problems and calls
/// that mean the same are written and made alike.
RUNG_API PerAxis fewest_numbers(const PerAxis& numbers, int axes);

/// Returns true if two tensors are given and begin at the same address: one is worked on in place.
inline bool shares_data(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data != nullptr && a.data == b.data;
}

}  // namespace rung
