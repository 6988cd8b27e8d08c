// SPDX-License-Identifier: Apache-2.0
// conv_backward_data is the derivative of conv with respect to x, in every rung and layout; errors.
#include "rung/ops/conv_backward_data/op/conv_backward_data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rung/ops/conv/shared/test/conv_test.hpp"

namespace rung {
namespace {

using namespace conv_test;

class ConvBackwardDataOn : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());
  Context host = Context::cpu(1);

  template <class F>
  void on_every_rung(const Layer& layer, const std::vector<float>& dy, const std::vector<float>& w,
                     F&& f) {
    std::vector<float> dx(static_cast<std::size_t>(layer.x().product()));
    const ConvBackwardData::Call call{.dy = ConstTensorRef(dy.data(), layer.y()),
                                      .w = ConstTensorRef(w.data(), layer.w()),
                                      .dx = TensorRef(dx.data(), layer.x()),
                                      .options = layer.options<ConvBackwardDataOptions>()};
    for (const std::string& name : rungs_for<ConvBackwardData>(call, context)) {
      std::fill(dx.begin(), dx.end(), -77.0F);
      conv_backward_data(context, call.dy, call.w, call.dx, call.options, {name});
      f(dx, name);
    }
  }
};

// The loss is the sum of dy y. It is linear in x, so a finite difference of any step is exact.
TEST_P(ConvBackwardDataOn, IsAFiniteDifference) {
  for (const Layer& layer : layers) {
    const auto dy = random_values(layer.y().product(), 1);
    const auto w = random_values(layer.w().product(), 2);
    const auto x = random_values(layer.x().product(), 3);
    const auto loss = [&](const std::vector<float>& at) {
      return dot(dy, convolved(host, layer, at, w, layer.options()));
    };
    std::vector<double> wanted;
    for (std::size_t i = 0; i < x.size(); i += 5) {
      auto above = x;
      auto below = x;
      above[i] += 0.5F;
      below[i] -= 0.5F;
      wanted.push_back((loss(above) - loss(below)) / (double{above[i]} - double{below[i]}));
    }
    on_every_rung(layer, dy, w, [&](const auto& dx, const std::string& name) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        ASSERT_NEAR(dx[5 * i], wanted[i], 1e-3 * (1 + std::abs(wanted[i]))) << name << ' ' << i;
      }
    });
  }
}

TEST_P(ConvBackwardDataOn, IsTheAdjoint) {
  for (const Layer& layer : layers) {
    const auto dy = whole_values(layer.y().product(), 4);
    const auto w = whole_values(layer.w().product(), 5);
    const auto x = whole_values(layer.x().product(), 6);
    const double wanted = dot(dy, convolved(host, layer, x, w, layer.options()));
    on_every_rung(layer, dy, w, [&](const auto& dx, const std::string& name) {
      EXPECT_EQ(dot(dx, x), wanted) << name;
    });
  }
}

TEST_P(ConvBackwardDataOn, PlacesThatNoFilterReachesAreZero) {
  const Layer layer{
      .images = 1, .channels = 2, .height = 6, .width = 9, .filters = 3, .kernel = 1, .stride = 3};
  const auto dy = random_values(layer.y().product(), 7);
  const auto w = random_values(layer.w().product(), 8);
  on_every_rung(layer, dy, w, [&](const auto& dx, const std::string& name) {
    for (std::size_t i = 0; i < dx.size(); ++i) {
      const bool reached = i % 54 / 9 % 3 == 0 && i % 9 % 3 == 0;
      EXPECT_EQ(dx[i] != 0, reached) << name << ' ' << i;
    }
  });
}

TEST_P(ConvBackwardDataOn, ANaNReachesWhatReadsItAndNoOthers) {
  for (const int dilation : {1, 2}) {
    for (const int stride : {1, 2}) {
      const Layer layer{.images = 1,
                        .channels = 3,
                        .height = 11,
                        .width = 13,
                        .filters = 5,
                        .kernel = 3,
                        .stride = stride,
                        .dilation = dilation};
      auto dy = whole_values(layer.y().product(), 9);
      const auto w = whole_values(layer.w().product(), 10);
      const std::int64_t columns = layer.y()[3];
      const std::int64_t row = layer.y()[2] / 2;
      const std::int64_t column = columns / 2;
      dy[static_cast<std::size_t>(row * columns + column)] =
          std::numeric_limits<float>::quiet_NaN();
      const auto reads = [&](std::int64_t at, std::int64_t of_dy) {
        const std::int64_t distance = at - of_dy * stride + layer.padding;
        return distance >= 0 && distance % dilation == 0 && distance / dilation < layer.kernel;
      };
      on_every_rung(layer, dy, w, [&](const auto& dx, const std::string& name) {
        for (std::int64_t i = 0; i < layer.x().product(); ++i) {
          ASSERT_EQ(std::isnan(dx[static_cast<std::size_t>(i)]),
                    reads(i / layer.width % layer.height, row) && reads(i % layer.width, column))
              << name << ' ' << i << ", stride " << stride << ", dilation " << dilation;
        }
      });
    }
  }
}

TEST_P(ConvBackwardDataOn, WithoutFiltersItIsZero) {
  std::vector<float> dx(2 * 3 * 4 * 4, 5.0F);
  conv_backward_data(context, {nullptr, DType::f32, Extents{2, 0, 2, 2}},
                     {nullptr, DType::f32, Extents{0, 3, 3, 3}},
                     TensorRef(dx.data(), {2, 3, 4, 4}));
  EXPECT_EQ(dx, std::vector<float>(dx.size(), 0.0F));
}

TEST_P(ConvBackwardDataOn, ErrorsNameWhatWasGiven) {
  std::vector<float> dy(4096), w(4096), dx(4096);
  const auto message = [&](const Extents& of_dy, const Extents& of_w, const Extents& of_dx) {
    return message_of([&] {
      conv_backward_data(context, TensorRef(dy.data(), of_dy), TensorRef(w.data(), of_w),
                         TensorRef(dx.data(), of_dx));
    });
  };
  EXPECT_NE(message({1, 4, 5, 5}, {4, 2, 3, 3}, {1, 2, 8, 8}).find("dy is 1x4x5x5"),
            std::string::npos);
  EXPECT_NE(message({1, 4, 6, 6}, {4, 3, 3, 3}, {1, 2, 8, 8}).find("4x2x3x3"), std::string::npos);
  EXPECT_NE(message({1, 4, 6, 6}, {4, 2, 3, 3}, {8, 8}).find("dx has 2 axes"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvBackwardDataOn, testing::Values(Backend::cpu, Backend::simt),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// Sums of small integers are exact in any order: every rung returns the bits of the first rung.
template <class T>
void every_rung_gives_the_same(const ConvBackwardData::Call& call, std::vector<T>& dx) {
  Context host = Context::cpu(1);
  Context context = Context::simt();
  conv_backward_data(host, call.dy, call.w, call.dx, call.options, {"naive"});
  const std::vector<T> wanted = dx;
  for (const std::string& name : rungs_for<ConvBackwardData>(call, context)) {
    std::fill(dx.begin(), dx.end(), T(-77.0F));
    conv_backward_data(context, call.dy, call.w, call.dx, call.options, {name});
    for (std::size_t i = 0; i < dx.size(); ++i) {
      ASSERT_EQ(static_cast<float>(dx[i]), static_cast<float>(wanted[i])) << name << ' ' << i;
    }
  }
}

void every_rung_gives_the_same(const Layer& layer) {
  const auto dy = whole_values(layer.y().product(), 9);
  const auto w = whole_values(layer.w().product(), 10);
  std::vector<float> dx(static_cast<std::size_t>(layer.x().product()));
  every_rung_gives_the_same<float>({.dy = ConstTensorRef(dy.data(), layer.y()),
                                    .w = ConstTensorRef(w.data(), layer.w()),
                                    .dx = TensorRef(dx.data(), layer.x()),
                                    .options = layer.options<ConvBackwardDataOptions>()},
                                   dx);
}

// Few tiles of many terms: blocks split the terms, also of phases.
TEST(ConvBackwardDataSimt, BlocksShareTheTermsOfSmallLayers) {
  for (const int stride : {1, 2, 3}) {
    every_rung_gives_the_same({.images = 1,
                               .channels = 5,
                               .height = 9,
                               .width = 7,
                               .filters = 133,
                               .stride = stride,
                               .padding = 1});
  }
}

// With more tiles than SMs, teams are whole warps; smaller layers have teams of half a warp.
TEST(ConvBackwardDataSimt, TeamsShareTheFiltersOfManyTiles) {
  for (const int stride : {1, 2, 4}) {
    every_rung_gives_the_same({.images = 133,
                               .channels = 2,
                               .height = 5,
                               .width = 6,
                               .filters = 11,
                               .stride = stride,
                               .padding = 1});
  }
}

TEST(ConvBackwardDataSimt, BlocksShareTheTermsOfSmallLayersOfHalves) {
  const auto halves = [](const std::vector<float>& from) {
    std::vector<bf16> made;
    made.reserve(from.size());
    for (const float value : from) made.emplace_back(value);
    return made;
  };
  for (const int stride : {1, 2}) {
    const std::int64_t height = convolved_extent(9, 3, stride, 1);
    const std::int64_t width = convolved_extent(6, 3, stride, 1);
    const Extents of_dy{2, height, width, 136};
    const Extents of_w{136, 3, 3, 24};
    const auto dy = halves(whole_values(of_dy.product(), 11));
    const auto w = halves(whole_values(of_w.product(), 12));
    std::vector<bf16> dx(2 * 9 * 6 * 24);
    ConvBackwardDataOptions options;
    options.stride = stride;
    options.padding = 1;
    options.channels_last = true;
    every_rung_gives_the_same<bf16>({.dy = ConstTensorRef(dy.data(), of_dy),
                                     .w = ConstTensorRef(w.data(), of_w),
                                     .dx = TensorRef(dx.data(), Extents{2, 9, 6, 24}),
                                     .options = options},
                                    dx);
  }
}

}  // namespace
}  // namespace rung
