// SPDX-License-Identifier: Apache-2.0
// Facts that follow from a layer's extents, for `rung explain` of conv and its gradients.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "rung/core/dtype.hpp"
#include "rung/core/extents.hpp"
#include "rung/harness/problem.hpp"
#include "rung/ops/conv/shared/text.hpp"

namespace rung::conv_facts {

/// Returns a count with separators: 1234567 as "1,234,567".
inline std::string grouped(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

/// Returns the lines that `rung explain` prints. Of the three tensors, number `made` is written and
/// each of its elements is a sum; the other two are read.
inline std::vector<std::string> layer_facts(const Problem& problem, const conv_text::Shapes& shapes,
                                            const char* const (&names)[3], int made) {
  const Extents* const extents[] = {&shapes.x, &shapes.w, &shapes.y};
  std::string tensors;
  for (int i = 0; i < 3; ++i) {
    tensors += fmt::format("{}{} is {}", i == 0 ? "" : ", ", names[i], to_string(*extents[i]));
  }
  const auto element = static_cast<double>(size_of(problem.dtype));
  const std::int64_t weights = shapes.w.product();
  std::vector<std::string> facts = {
      tensors + ".",
      fmt::format("Parameters: {} weights ({:.3g} kB), and {} of a bias.", grouped(weights),
                  static_cast<double>(weights) * element / 1000, grouped(shapes.w[0]))};
  if (shapes.x.product() == 0 || weights == 0 || shapes.y.product() == 0) return facts;
  const std::int64_t terms = weights / shapes.w[0];
  const double products = static_cast<double>(shapes.y.product()) * static_cast<double>(terms);
  facts.push_back(fmt::format(
      "Operations: {:.4g} multiply-adds, {} for each element of {}; those with the padding count.",
      products, grouped(terms), names[2]));
  std::string reuse = "Reuse: ";
  for (int i = 0; i < 3; ++i) {
    if (i == made) continue;
    reuse += fmt::format("each element of {} is used {:.4g} times, ", names[i],
                         products / static_cast<double>(extents[i]->product()));
  }
  const double bytes =
      element * static_cast<double>(shapes.x.product() + weights + shapes.y.product());
  facts.push_back(reuse +
                  fmt::format("{:.3g} operations per byte that must move.", 2 * products / bytes));
  return facts;
}

/// Returns layer_facts() of a problem; Options is the type of the operator's options.
template <class Options>
std::vector<std::string> facts_of(std::string_view op, const Problem& problem,
                                  const char* const (&names)[3], int made) {
  Options options;
  return layer_facts(problem, conv_text::read_layer(op, problem, options), names, made);
}

}  // namespace rung::conv_facts
