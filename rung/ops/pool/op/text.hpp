// SPDX-License-Identifier: Apache-2.0
// Windows as problems and command lines spell them, for pool and pool_backward.
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>

#include "rung/core/any_operator.hpp"
#include "rung/core/option_effect.hpp"
#include "rung/core/problem.hpp"
#include "rung/core/require.hpp"
#include "rung/core/words.hpp"
#include "rung/ops/pool/pool.hpp"

namespace rung::pool_text {

inline constexpr std::pair<std::string_view, Pooling> kinds[] = {{"max", Pooling::max},
                                                                 {"average", Pooling::average},
                                                                 {"l2", Pooling::l2},
                                                                 {"weighted", Pooling::weighted}};

/// "3", for both axes, or "3x2".
inline std::pair<int, int> parse_pair(std::string_view op, std::string_view name,
                                      std::string_view text) {
  int pair[2] = {0, 0};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 2; ++i) {
    const auto [stop, error] = std::from_chars(at, end, pair[i]);
    const bool last = stop == end;
    if (error != std::errc{} || (!last && (i == 1 || *stop != 'x'))) break;
    if (last) return {pair[0], i == 0 ? pair[0] : pair[1]};
    at = stop + 1;
  }
  reject(op, fmt::format("{} is '{}'; accepted: a number, or two as in 3x2", name, text));
}

/// `from` has text() and has(); `names` are those of kernel, stride, padding and dilation.
template <class Source, class Options>
void read(std::string_view op, const Source& from, const std::array<std::string_view, 4>& names,
          Options& options) {
  const auto pair = [&](std::size_t which, std::string_view otherwise) {
    return parse_pair(op, names[which], from.text(names[which], otherwise));
  };
  std::tie(options.kernel_height, options.kernel_width) = pair(0, "2");
  std::tie(options.stride_height, options.stride_width) = pair(1, "0");
  std::tie(options.padding_height, options.padding_width) = pair(2, "0");
  std::tie(options.dilation_height, options.dilation_width) = pair(3, "1");
  options.ceil_mode = from.has("ceil");
  options.count_padding = !from.has("valid");
  options.channels_last = from.has("nhwc");
}
template <class Options>
void read_windows(std::string_view op, const Problem& problem, Options& options) {
  read(op, problem, {"k", "s", "p", "d"}, options);
  expect_one_of(op, problem, kinds, [](const auto& one) { return one.first; });
  for (const auto& [word, kind] : kinds) {
    if (problem.has(word)) options.kind = kind;
  }
}
template <class Options>
void read_windows(std::string_view op, const Invocation& call, Options& options) {
  const std::string_view given = call.text("kind", "max");
  expect_effect(op, call, "kind", given, {{"valid", "average|weighted"}});
  read(op, call, {"kernel", "stride", "padding", "dilation"}, options);
  for (const auto& [word, kind] : kinds) {
    if (given == word) options.kind = kind;
  }
}

}  // namespace rung::pool_text
