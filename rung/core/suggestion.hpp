// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?": the known word that a mistyped one is closest to, for error messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"

namespace rung {

/// Returns the least number of insertions, deletions, substitutions and transpositions of adjacent
/// letters that turn `a` into `b` (optimal string alignment distance). Case-insensitive.
RUNG_API std::size_t edit_distance(std::string_view a, std::string_view b);

/// Returns " (did you mean 'softmax'?)" if a known word is similar to `word`: their edit distance
/// is at most a third of the length of `word` (but 1 is allowed), or the known word begins with
/// `word`. Returns "" otherwise. The first of equally similar words is suggested.
RUNG_API std::string did_you_mean(std::string_view word,
                                  const std::vector<std::string_view>& known);
RUNG_API std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace rung
