// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?": the known word that a mistyped one is closest to, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"

namespace rung {

/// The least number of insertions, deletions, substitutions and swaps of neighbors that turn `a`
/// into `b`, where no part is edited twice (optimal string alignment). Upper and lower case are
/// equal.
RUNG_API std::size_t edit_distance(std::string_view a, std::string_view b);

/// " (did you mean 'softmax'?)" when a known word is close to `word` - a third of its letters
/// differ at most, or it continues `word` - and otherwise "". Of equally close words the first
/// counts.
RUNG_API std::string did_you_mean(std::string_view word,
                                  const std::vector<std::string_view>& known);
RUNG_API std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace rung
