// SPDX-License-Identifier: Apache-2.0
// Parsing of options that several operators share.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/extents.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/problem.hpp"

namespace rung {

/// Rejects a problem with two or more of the flags word_of(one), for `one` in `all`, which exclude
/// each other.
template <class Range, class WordOf>
void expect_one_of(std::string_view op, const Problem& problem, const Range& all, WordOf word_of) {
  std::string first;
  for (const auto& one : all) {
    const std::string word(word_of(one));
    if (!problem.has(word)) continue;
    if (!first.empty()) {
      std::string why = "problem '" + problem.to_string() + "' has ";
      why += first;
      why += " and ";
      why += word;
      reject(op, why + "; accepted: one of them");
    }
    first = word;
  }
}

/// Parses a list of axes: "0,2", "-1", or one digit per axis, "02", as in problems, where a comma
/// would end the option.
inline Extents parse_axis_list(std::string_view op, std::string_view what, std::string_view text) {
  std::vector<std::string_view> words;
  const bool is_list = text.find_first_of(",-") != std::string_view::npos;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = is_list ? std::min(text.find(',', begin), text.size()) : begin + 1;
    words.push_back(text.substr(begin, end - begin));
    begin = end + (is_list ? 1 : 0);
  }
  Extents axes;
  bool good = text.empty() || text.back() != ',';
  for (const std::string_view word : words) {
    if (word == "_") continue;
    int axis = 0;
    const char* const end = word.data() + word.size();
    const auto [stopped, error] = std::from_chars(word.data(), end, axis);
    good = good && error == std::errc() && stopped == end && axis >= -max_rank && axis < max_rank &&
           axes.rank < max_rank;
    if (!good) break;
    axes[axes.rank++] = axis;
  }
  if (good) return axes;
  reject(op, std::string(what) + " '" + std::string(text) +
                 "'; accepted: axes from 0 to 7, or from -8 to -1, which count from the end, as in "
                 "0,2 or -1; or a digit per axis, as in 02");
}

}  // namespace rung
