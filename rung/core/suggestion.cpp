// SPDX-License-Identifier: Apache-2.0
// Edit distance, and selection of the word close enough to suggest.
#include "rung/core/suggestion.hpp"

#include <algorithm>
#include <cctype>

namespace rung {
namespace {

/// Longest word that gets a suggestion: for a whole file, pasted by mistake, a match would be
/// chance, and the search takes time quadratic in the length.
constexpr std::size_t max_length = 64;
/// Shortest prefix that is completed: shorter ones match too many words.
constexpr std::size_t min_prefix = 3;

char lower(char letter) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
}

bool continues(std::string_view known, std::string_view word) {
  return word.size() >= min_prefix && known.size() > word.size() &&
         std::equal(word.begin(), word.end(), known.begin(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of distances between prefixes of a and of b.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.empty() || word.size() > max_length) return "";
  const std::size_t allowed = std::max<std::size_t>(1, word.size() / 3);
  std::size_t closest = allowed + 1;
  std::string_view suggestion;
  for (const std::string_view candidate : known) {
    const std::size_t distance =
        continues(candidate, word) ? allowed : edit_distance(word, candidate);
    if (distance < closest && distance < word.size()) {
      closest = distance;
      suggestion = candidate;
    }
  }
  return suggestion.empty() ? "" : " (did you mean '" + std::string(suggestion) + "'?)";
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  return did_you_mean(word, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace rung
