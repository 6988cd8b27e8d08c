// SPDX-License-Identifier: Apache-2.0
// conv_backward_filter is the derivative of conv with respect to w, in every rung and layout; the
// same bits for any number of threads; errors.
#include "rung/ops/conv_backward_filter/op/conv_backward_filter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/ops/conv/shared/test/conv_test.hpp"

namespace rung {
namespace {

using namespace conv_test;

class ConvBackwardFilterOn : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
  Context host = Context::cpu(1);

  template <class F>
  void on_every_rung(const Layer& layer, const std::vector<float>& x, const std::vector<float>& dy,
                     F&& f) {
    std::vector<float> dw(static_cast<std::size_t>(layer.w().product()));
    const ConvBackwardFilter::Call call{.x = ConstTensorRef(x.data(), layer.x()),
                                        .dy = ConstTensorRef(dy.data(), layer.y()),
                                        .dw = TensorRef(dw.data(), layer.w()),
                                        .options = layer.options<ConvBackwardFilterOptions>()};
    for (const std::string& name : rungs_for<ConvBackwardFilter>(call, context)) {
      std::fill(dw.begin(), dw.end(), -77.0F);
      conv_backward_filter(context, call.x, call.dy, call.dw, call.options, {name});
      f(dw, name);
    }
  }
};

// The loss is the sum of dy y. It is linear in w, so a finite difference of any step is exact.
TEST_P(ConvBackwardFilterOn, IsAFiniteDifference) {
  for (const Layer& layer : layers) {
    const auto dy = random_values(layer.y().product(), 1);
    const auto w = random_values(layer.w().product(), 2);
    const auto x = random_values(layer.x().product(), 3);
    const auto loss = [&](const std::vector<float>& at) {
      return dot(dy, convolved(host, layer, x, at, layer.options()));
    };
    std::vector<double> wanted;
    for (std::size_t i = 0; i < w.size(); i += 3) {
      auto above = w;
      auto below = w;
      above[i] += 0.5F;
      below[i] -= 0.5F;
      wanted.push_back((loss(above) - loss(below)) / (double{above[i]} - double{below[i]}));
    }
    on_every_rung(layer, x, dy, [&](const auto& dw, const std::string& name) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_NEAR(dw[3 * i], wanted[i], 2e-3 * (1 + std::abs(wanted[i]))) << name << ' ' << i;
      }
    });
  }
}

TEST_P(ConvBackwardFilterOn, IsTheAdjoint) {
  for (const Layer& layer : layers) {
    const auto dy = whole_values(layer.y().product(), 4);
    const auto w = whole_values(layer.w().product(), 5);
    const auto x = whole_values(layer.x().product(), 6);
    const double wanted = dot(dy, convolved(host, layer, x, w, layer.options()));
    on_every_rung(layer, x, dy, [&](const auto& dw, const std::string& name) {
      EXPECT_EQ(dot(dw, w), wanted) << name;
    });
  }
}

TEST_P(ConvBackwardFilterOn, ImagesAddUp) {
  Layer layer = layers[3];
  const auto of_one = layer.x().product();
  const auto of_dy = layer.y().product();
  layer.images = 3;
  const auto x = whole_values(layer.x().product(), 7);
  const auto dy = whole_values(layer.y().product(), 8);
  Layer one = layer;
  one.images = 1;
  std::vector<float> wanted(static_cast<std::size_t>(layer.w().product()));
  for (std::int64_t n = 0; n < 3; ++n) {
    std::vector<float> dw(wanted.size());
    conv_backward_filter(context, ConstTensorRef(x.data() + n * of_one, one.x()),
                         ConstTensorRef(dy.data() + n * of_dy, one.y()),
                         TensorRef(dw.data(), one.w()), one.options<ConvBackwardFilterOptions>());
    for (std::size_t i = 0; i < dw.size(); ++i) wanted[i] += dw[i];
  }
  on_every_rung(layer, x, dy,
                [&](const auto& dw, const std::string& name) { EXPECT_EQ(dw, wanted) << name; });
}

// With padding, taps at the filter's edge do not read all pixels.
TEST_P(ConvBackwardFilterOn, ANaNReachesTheTapsThatReadItAndNoOthers) {
  const auto check = [&]<class T>(const Layer& layer) {
    constexpr std::int64_t row = 1;
    constexpr std::int64_t column = 6;
    const std::int64_t kernel = layer.kernel;
    const auto values = whole_values(layer.x().product(), 9);
    const auto results = whole_values(layer.y().product(), 10);
    std::vector<T> x(values.begin(), values.end());
    const std::vector<T> dy(results.begin(), results.end());
    std::vector<T> dw(static_cast<std::size_t>(layer.w().product()));
    x[static_cast<std::size_t>((layer.height + row) * layer.width + column)] =
        T(std::numeric_limits<float>::quiet_NaN());
    const ConvBackwardFilter::Call call{.x = ConstTensorRef(x.data(), layer.x()),
                                        .dy = ConstTensorRef(dy.data(), layer.y()),
                                        .dw = TensorRef(dw.data(), layer.w()),
                                        .options = layer.options<ConvBackwardFilterOptions>()};
    for (const std::string& name : rungs_for<ConvBackwardFilter>(call, context)) {
      conv_backward_filter(context, call.x, call.dy, call.dw, call.options, {name});
      for (std::int64_t i = 0; i < layer.w().product(); ++i) {
        const std::int64_t h = row + layer.padding - i / kernel % kernel;  // of dy
        const std::int64_t w = column + layer.padding - i % kernel;
        // The channel with the NaN is the second.
        const std::int64_t channel = i / (kernel * kernel) % layer.channels;
        const bool reads = channel == 1 && h >= 0 && h < layer.height && w >= 0 && w < layer.width;
        ASSERT_EQ(std::isnan(static_cast<float>(dw[static_cast<std::size_t>(i)])), reads)
            << name << ' ' << i;
      }
    }
  };
  for (const std::int64_t kernel : {3, 5, 7}) {
    Layer layer{.images = 1,
                .channels = 3,
                .height = 9,
                .width = 7,
                .filters = 5,
                .kernel = kernel,
                .padding = static_cast<int>(kernel / 2)};
    for (const int groups : {1, 3}) {
      layer.groups = groups;
      if (groups == 3) layer.filters = 3;
      check.operator()<float>(layer);
      check.operator()<bf16>(layer);
    }
  }
}

TEST_P(ConvBackwardFilterOn, WithoutImagesItIsZero) {
  std::vector<float> dw(4 * 3 * 3 * 3, 5.0F);
  conv_backward_filter(context, {nullptr, DType::f32, Extents{0, 3, 4, 4}},
                       {nullptr, DType::f32, Extents{0, 4, 2, 2}},
                       TensorRef(dw.data(), {4, 3, 3, 3}));
  EXPECT_EQ(dw, std::vector<float>(dw.size(), 0.0F));
}

TEST_P(ConvBackwardFilterOn, ErrorsNameWhatWasGiven) {
  std::vector<float> x(4096), dy(4096), dw(4096);
  const auto message = [&](const Extents& of_x, const Extents& of_dy, const Extents& of_dw) {
    return message_of([&] {
      conv_backward_filter(context, TensorRef(x.data(), of_x), TensorRef(dy.data(), of_dy),
                           TensorRef(dw.data(), of_dw));
    });
  };
  EXPECT_NE(message({1, 2, 8, 8}, {1, 4, 5, 6}, {4, 2, 3, 3}).find("1x4x6x6"), std::string::npos);
  EXPECT_NE(message({1, 2, 8, 8}, {1, 4, 6, 6}, {4, 2, 3}).find("dw has 3 axes"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvBackwardFilterOn,
                         testing::Values(Backend::cpu, Backend::simt),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// Few filters and terms, many pixels: more slices than warps that add them.
TEST(ConvBackwardFilterSimt, SlicesOfSmallFiltersAddUp) {
  Context context = Context::simt();
  Context host = Context::cpu(1);
  const Layer layer{
      .images = 3, .channels = 2, .height = 21, .width = 22, .filters = 3, .kernel = 5};
  const auto x = whole_values(layer.x().product(), 13);
  const auto dy = whole_values(layer.y().product(), 14);
  std::vector<float> dw(static_cast<std::size_t>(layer.w().product()));
  const ConvBackwardFilter::Call call{.x = ConstTensorRef(x.data(), layer.x()),
                                      .dy = ConstTensorRef(dy.data(), layer.y()),
                                      .dw = TensorRef(dw.data(), layer.w()),
                                      .options = layer.options<ConvBackwardFilterOptions>()};
  conv_backward_filter(host, call.x, call.dy, call.dw, call.options, {"naive"});
  const auto wanted = dw;
  for (const std::string& name : rungs_for<ConvBackwardFilter>(call, context)) {
    std::fill(dw.begin(), dw.end(), -77.0F);
    conv_backward_filter(context, call.x, call.dy, call.dw, call.options, {name});
    EXPECT_EQ(dw, wanted) << name;
  }
}

// The tensor-core rungs split 4096 pixels into slices, whose sums another kernel adds.
TEST(ConvBackwardFilterSimt, SlicesOfPixelsAddUp) {
  Context context = Context::simt();
  Context host = Context::cpu(1);
  const Extents of_x{4, 32, 32, 8};
  const Extents of_dy{4, 32, 31, 16};
  const Extents of_dw{16, 1, 2, 8};
  const auto halves = [](const std::vector<float>& from) {
    std::vector<f16> made;
    made.reserve(from.size());
    for (const float value : from) made.emplace_back(value);
    return made;
  };
  const auto x = halves(whole_values(of_x.product(), 11));
  const auto dy = halves(whole_values(of_dy.product(), 12));
  std::vector<f16> dw(static_cast<std::size_t>(of_dw.product()));
  const ConvBackwardFilter::Call call{.x = ConstTensorRef(x.data(), of_x),
                                      .dy = ConstTensorRef(dy.data(), of_dy),
                                      .dw = TensorRef(dw.data(), of_dw),
                                      .options = {.channels_last = true}};
  conv_backward_filter(host, call.x, call.dy, call.dw, call.options);
  const auto wanted = dw;
  const auto names = rungs_for<ConvBackwardFilter>(call, context);
  EXPECT_NE(std::find(names.begin(), names.end(), "implicit_gemm_tma"), names.end());
  for (const std::string& name : names) {
    std::fill(dw.begin(), dw.end(), f16(-77.0F));
    conv_backward_filter(context, call.x, call.dy, call.dw, call.options, {name});
    for (std::size_t i = 0; i < dw.size(); ++i) {
      ASSERT_EQ(dw[i].bits, wanted[i].bits) << name << ' ' << i;
    }
  }
}

TEST(ConvBackwardFilterCpu, AnyNumberOfThreadsGivesTheSameBits) {
  const Layer layer{
      .images = 20, .channels = 6, .height = 17, .width = 19, .filters = 16, .kernel = 5};
  const auto x = random_values(layer.x().product(), 9);
  const auto dy = random_values(layer.y().product(), 10);
  std::vector<float> one;
  for (const int threads : {1, 2, 3, 7}) {
    Context context = Context::cpu(threads);
    std::vector<float> dw(static_cast<std::size_t>(layer.w().product()));
    conv_backward_filter(context, ConstTensorRef(x.data(), layer.x()),
                         ConstTensorRef(dy.data(), layer.y()), TensorRef(dw.data(), layer.w()),
                         layer.options<ConvBackwardFilterOptions>());
    if (threads == 1) one = dw;
    EXPECT_EQ(dw, one) << threads;
  }
}

}  // namespace
}  // namespace rung
