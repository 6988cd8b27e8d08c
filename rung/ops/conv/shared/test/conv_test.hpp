// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of conv and its gradients: small layers with their tensors, and the list of
// rungs that support a call.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/ops/conv/op/conv.hpp"

namespace rung::conv_test {

inline std::vector<float> random_values(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(engine);
  return values;
}

/// Returns small integers: sums of their products are exact in any order.
inline std::vector<float> whole_values(std::int64_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int> some(-3, 3);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(some(engine));
  return values;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  return "";
}

/// Layer of two dimensions, channels first.
struct Layer {
  std::int64_t images = 1, channels = 1, height = 1, width = 1, filters = 1, kernel = 3;
  int stride = 1, padding = 0, dilation = 1, groups = 1;

  [[nodiscard]] std::int64_t out(std::int64_t extent) const {
    return convolved_extent(extent, kernel, stride, padding, dilation);
  }
  [[nodiscard]] Extents x() const { return {images, channels, height, width}; }
  [[nodiscard]] Extents w() const { return {filters, channels / groups, kernel, kernel}; }
  [[nodiscard]] Extents y() const { return {images, filters, out(height), out(width)}; }

  template <class Options = ConvOptions>
  [[nodiscard]] Options options() const {
    Options options;
    options.stride = stride;
    options.padding = padding;
    options.dilation = dilation;
    options.groups = groups;
    return options;
  }
};

/// Layers that combine features, exceed one tile and one vector, and whose extents are no multiples
/// of any tile or vector.
inline constexpr Layer layers[] = {
    {.images = 2, .channels = 3, .height = 9, .width = 11, .filters = 5, .padding = 1},
    {.images = 1,
     .channels = 8,
     .height = 10,
     .width = 9,
     .filters = 6,
     .stride = 2,
     .padding = 1,
     .groups = 2},
    {.images = 2,
     .channels = 4,
     .height = 8,
     .width = 7,
     .filters = 4,
     .padding = 2,
     .dilation = 2,
     .groups = 4},
    {.images = 1, .channels = 1, .height = 12, .width = 13, .filters = 6, .kernel = 5},
    {.images = 1, .channels = 17, .height = 5, .width = 6, .filters = 19, .kernel = 1},
};

/// Returns the rungs of a backend that support a call; "" is the public call's own choice.
template <class Op>
std::vector<std::string> rungs_for(const typename Op::Call& call, const Context& context) {
  std::vector<std::string> names{""};
  const typename Op::Args args = bind<Op>(call);
  for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
    const RungInfo& info = rung->info;
    if (info.backend != context.backend() || info.peer || !rung->supports(args, context)) continue;
    names.emplace_back(info.name);
  }
  return names;
}

/// Returns y of the public call.
inline std::vector<float> convolved(Context& context, const Layer& layer,
                                    const std::vector<float>& x, const std::vector<float>& w,
                                    const ConvOptions& options, std::string_view rung = "") {
  std::vector<float> y(static_cast<std::size_t>(layer.y().product()), -77.0F);
  conv(context, ConstTensorRef(x.data(), layer.x()), ConstTensorRef(w.data(), layer.w()),
       TensorRef(y.data(), layer.y()), options, {rung});
  return y;
}

inline double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

}  // namespace rung::conv_test
