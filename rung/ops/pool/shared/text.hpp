// SPDX-License-Identifier: Apache-2.0
// Windows in the text of problems and command lines, for pool and pool_backward.
#pragma once

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "rung/core/per_axis.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/option_effect.hpp"
#include "rung/harness/problem.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/pool/op/pool.hpp"

namespace rung::pool_text {

inline constexpr std::pair<std::string_view, Pooling> kinds[] = {{"max", Pooling::max},
                                                                 {"average", Pooling::average},
                                                                 {"l2", Pooling::l2},
                                                                 {"weighted", Pooling::weighted}};

/// Reads a window. `from` has text() and has(); `names` are the names of kernel, stride, padding
/// and dilation.
template <class Source, class Options>
void read(std::string_view op, const Source& from, const std::array<std::string_view, 4>& names,
          Options& options) {
  const auto numbers = [&](std::size_t which, std::string_view otherwise) {
    return fewest_numbers(parse_per_axis(op, names[which], from.text(names[which], otherwise), 2),
                          2);
  };
  options.kernel = numbers(0, "2");
  options.stride = numbers(1, "0");
  options.padding = numbers(2, "0");
  options.dilation = numbers(3, "1");
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

/// Writes the text that read_windows() reads, from the shape of an image and a call's options.
template <class Options>
ProblemWriter describe_windows(DType dtype, const Extents& image, const Options& options) {
  const bool last = options.channels_last;
  ProblemWriter writer(dtype, last ? Extents{image[0], image[3], image[1], image[2]} : image);
  writer.word(kinds, options.kind, Pooling::max)
      .per_axis("k", options.kernel, 2, 2)
      .per_axis("s", options.stride, 2, 0)
      .per_axis("p", options.padding, 2, 0)
      .per_axis("d", options.dilation, 2, 1)
      .flag("ceil", options.ceil_mode)
      .flag("valid", !options.count_padding)
      .flag("nhwc", last);
  return writer;
}

}  // namespace rung::pool_text
