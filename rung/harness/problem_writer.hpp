// SPDX-License-Identifier: Apache-2.0
// ProblemWriter: builds the problem that describes an operator's arguments, the inverse of the
// operator's make():
//
//   return ProblemWriter(call.x.dtype, call.x.shape)
//       .integer("axis", call.axis, -1)
//       .flag("log", call.log)
//       .number("scale", call.scale, 1.0)
//       .problem();
//
// Options are written in the order of the calls, and only if they differ from their defaults. No
// value causes an exception.
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
  /// Begins a problem with these extents. A scalar gets one extent of 1, as text has at least one.
  ProblemWriter(DType dtype, const Extents& extents);

  /// Writes a flag (a name without a value) if `given`.
  ProblemWriter& flag(std::string_view name, bool given);
  ProblemWriter& text(std::string_view name, std::string_view value, std::string_view otherwise);
  ProblemWriter& dtype(std::string_view name, DType value, DType otherwise);
  ProblemWriter& integer(std::string_view name, std::int64_t value, std::int64_t otherwise);
  /// Writes `value` with the fewest digits that parse as the same number. Omits NaN and infinity,
  /// which problems cannot represent.
  ProblemWriter& number(std::string_view name, double value, double otherwise);
  /// Writes "3x5"; nothing for an empty list.
  ProblemWriter& extents(std::string_view name, const Extents& list);
  /// Writes axes of a tensor of `rank` axes: one digit per axis, "02", or a single axis, also as
  /// "-1"; nothing for an empty list.
  ProblemWriter& axes(std::string_view name, const Extents& list, int rank);
  /// Writes the numbers of an image's axes, "3x2", or one number if all are equal, "3".
  ProblemWriter& per_axis(std::string_view name, const PerAxis& numbers, int axes, int otherwise);
  /// Writes the flag of an enumerator; `words` are pairs of flag and enumerator.
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

/// Returns one number for all axes if the numbers of the first `axes` axes are equal, so that equal
/// problems have the same text.
RUNG_API PerAxis fewest_numbers(const PerAxis& numbers, int axes);

/// Returns true if both tensors have data at the same address, as for an operation in place.
inline bool shares_data(const ConstTensorRef& a, const ConstTensorRef& b) {
  return a.data != nullptr && a.data == b.data;
}

}  // namespace rung
