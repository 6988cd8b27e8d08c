// SPDX-License-Identifier: Apache-2.0
// Properties of conv that `rung check` does not cover: linearity, shifts, groups and dilation in
// terms of other calls, 1 x 1 as a matrix product, NaN, layouts, errors.
#include "rung/ops/conv/op/conv.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rung/harness/facts.hpp"
#include "rung/ops/conv/shared/test/conv_test.hpp"
#include "rung/peers/cudnn_algorithms.hpp"

namespace rung {
namespace {

using namespace conv_test;

class ConvOn : public testing::TestWithParam<Backend> {
 protected:
  Context context = Context::on(GetParam());

  /// Calls f(y, rung) after each rung that supports the call.
  template <class F>
  void on_every_rung(const Layer& layer, std::vector<float>& x, std::vector<float>& w,
                     const ConvOptions& options, F&& f) {
    std::vector<float> y(static_cast<std::size_t>(layer.y().product()));
    const Conv::Call call{.x = TensorRef(x.data(), layer.x()),
                          .w = TensorRef(w.data(), layer.w()),
                          .y = TensorRef(y.data(), layer.y()),
                          .options = options};
    for (const std::string& name : rungs_for<Conv>(call, context)) {
      f(convolved(context, layer, x, w, options, name), name);
    }
  }
};

TEST_P(ConvOn, IsLinearInImagesAndFilters) {
  for (const Layer& layer : layers) {
    auto x = whole_values(layer.x().product(), 1);
    auto other = whole_values(layer.x().product(), 2);
    auto w = whole_values(layer.w().product(), 3);
    auto sum = x;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + 2 * other[i];
    const auto y = convolved(context, layer, x, w, layer.options());
    const auto z = convolved(context, layer, other, w, layer.options());
    on_every_rung(layer, sum, w, layer.options(), [&](const auto& both, const std::string& name) {
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(both[i], y[i] + 2 * z[i]) << name;
    });
  }
}

TEST_P(ConvOn, AShiftedImageGivesAShiftedResult) {
  const Layer layer{.images = 1, .channels = 3, .height = 12, .width = 20, .filters = 4};
  auto x = whole_values(layer.x().product(), 4);
  auto w = whole_values(layer.w().product(), 5);
  auto moved = x;
  for (std::size_t i = 1; i < x.size(); ++i) moved[i] = x[i - 1];  // shifted right by one
  const auto y = convolved(context, layer, x, w, layer.options());
  on_every_rung(layer, moved, w, layer.options(), [&](const auto& z, const std::string& name) {
    constexpr std::int64_t width = 18;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(y.size()); ++i) {
      if (i % width == 0) continue;  // column 0 received the previous row's last element
      ASSERT_EQ(z[static_cast<std::size_t>(i)], y[static_cast<std::size_t>(i - 1)]) << name;
    }
  });
}

TEST_P(ConvOn, GroupsAreSeparateCalls) {
  const Layer layer{
      .images = 1, .channels = 6, .height = 7, .width = 9, .filters = 9, .padding = 1, .groups = 3};
  const Layer part{.images = 1, .channels = 2, .height = 7, .width = 9, .filters = 3, .padding = 1};
  auto x = whole_values(layer.x().product(), 6);
  auto w = whole_values(layer.w().product(), 7);
  std::vector<float> wanted;
  for (std::int64_t group = 0; group < 3; ++group) {
    const std::int64_t of_x = part.x().product();
    const std::int64_t of_w = part.w().product();
    const std::vector<float> xs(x.begin() + group * of_x, x.begin() + (group + 1) * of_x);
    const std::vector<float> ws(w.begin() + group * of_w, w.begin() + (group + 1) * of_w);
    const auto y = convolved(context, part, xs, ws, part.options());
    wanted.insert(wanted.end(), y.begin(), y.end());
  }
  on_every_rung(layer, x, w, layer.options(),
                [&](const auto& y, const std::string& name) { ASSERT_EQ(y, wanted) << name; });
}

TEST_P(ConvOn, OneByOneIsAMatrixProduct) {
  const Layer layer{
      .images = 1, .channels = 21, .height = 5, .width = 13, .filters = 18, .kernel = 1};
  auto x = whole_values(layer.x().product(), 8);
  auto w = whole_values(layer.w().product(), 9);
  std::vector<float> wanted(static_cast<std::size_t>(18 * 65));
  for (std::size_t k = 0; k < 18; ++k) {
    for (std::size_t c = 0; c < 21; ++c) {
      for (std::size_t i = 0; i < 65; ++i) wanted[k * 65 + i] += w[k * 21 + c] * x[c * 65 + i];
    }
  }
  on_every_rung(layer, x, w, layer.options(),
                [&](const auto& y, const std::string& name) { ASSERT_EQ(y, wanted) << name; });
}

TEST_P(ConvOn, DilationIsAFilterStuffedWithZeros) {
  const Layer dilated{.images = 1,
                      .channels = 2,
                      .height = 9,
                      .width = 12,
                      .filters = 3,
                      .padding = 2,
                      .dilation = 2};
  const Layer stuffed{.images = 1,
                      .channels = 2,
                      .height = 9,
                      .width = 12,
                      .filters = 3,
                      .kernel = 5,
                      .padding = 2};
  auto x = whole_values(dilated.x().product(), 10);
  auto w = whole_values(dilated.w().product(), 11);
  std::vector<float> wide(static_cast<std::size_t>(stuffed.w().product()));
  for (std::size_t i = 0; i < w.size(); ++i) {
    wide[i / 9 * 25 + i % 9 / 3 * 10 + i % 3 * 2] = w[i];
  }
  const auto wanted = convolved(context, stuffed, x, wide, stuffed.options());
  on_every_rung(dilated, x, w, dilated.options(),
                [&](const auto& y, const std::string& name) { ASSERT_EQ(y, wanted) << name; });
}

TEST_P(ConvOn, ANaNReachesItsWindowsAndNoOthers) {
  const Layer layer{
      .images = 1, .channels = 2, .height = 8, .width = 9, .filters = 3, .padding = 1};
  auto x = whole_values(layer.x().product(), 12);
  auto w = std::vector<float>(static_cast<std::size_t>(layer.w().product()), 1.0F);
  x[72 + 4 * 9 + 5] = std::numeric_limits<float>::quiet_NaN();
  for (const Activation activation : {Activation::none, Activation::relu}) {
    ConvOptions options = layer.options();
    options.activation = activation;
    on_every_rung(layer, x, w, options, [&](const auto& y, const std::string& name) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        const std::size_t row = i % 72 / 9;
        const std::size_t column = i % 9;
        const bool near = row >= 3 && row <= 5 && column >= 4 && column <= 6;
        ASSERT_EQ(std::isnan(y[i]), near) << name << ' ' << i;
      }
    });
  }
}

TEST_P(ConvOn, ChannelsLastIsTheSameNumbers) {
  for (const Layer& layer : layers) {
    auto x = whole_values(layer.x().product(), 13);
    auto w = whole_values(layer.w().product(), 14);
    const auto wanted = convolved(context, layer, x, w, layer.options());
    // Transposed in memory; the public call gets the option channels_last.
    const auto turned = [](const std::vector<float>& from, const Extents& s) {
      std::vector<float> to(from.size());
      const std::int64_t pixels = s[2] * s[3];
      for (std::int64_t i = 0; i < s.product(); ++i) {
        const std::int64_t plane = i / pixels;
        to[static_cast<std::size_t>((plane / s[1] * pixels + i % pixels) * s[1] + plane % s[1])] =
            from[static_cast<std::size_t>(i)];
      }
      return to;
    };
    const auto last = [](const Extents& s) { return Extents{s[0], s[2], s[3], s[1]}; };
    const auto tx = turned(x, layer.x());
    const auto tw = turned(w, layer.w());
    std::vector<float> y(wanted.size(), -77.0F);
    ConvOptions options = layer.options();
    options.channels_last = true;
    conv(context, ConstTensorRef(tx.data(), last(layer.x())),
         ConstTensorRef(tw.data(), last(layer.w())), TensorRef(y.data(), last(layer.y())), options);
    EXPECT_EQ(y, turned(wanted, layer.y()));
  }
}

TEST_P(ConvOn, WinogradLosesAFewBitsOnly) {
  const Layer layer{
      .images = 1, .channels = 32, .height = 13, .width = 14, .filters = 20, .padding = 1};
  auto x = random_values(layer.x().product(), 15);
  auto w = random_values(layer.w().product(), 16);
  const auto wanted = convolved(context, layer, x, w, layer.options());
  ConvOptions options = layer.options();
  options.winograd = true;
  on_every_rung(layer, x, w, options, [&](const auto& y, const std::string& name) {
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], wanted[i], 1e-3) << name;
  });
}

TEST_P(ConvOn, ErrorsNameWhatWasGiven) {
  const Layer layer{.images = 2, .channels = 4, .height = 8, .width = 8, .filters = 6};
  std::vector<float> x(4096), w(4096), y(4096);
  const auto expect = [&](const Extents& xs, const Extents& ws, const Extents& ys,
                          const ConvOptions& options, const std::string& words) {
    const std::string message = message_of([&] {
      conv(context, TensorRef(x.data(), xs), TensorRef(w.data(), ws), TensorRef(y.data(), ys),
           options);
    });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  const ConvOptions right;
  expect({4, 8}, layer.w(), layer.y(), right, "x has 2 axes");
  expect(layer.x(), {6, 4, 3}, layer.y(), right, "w has 3 axes");
  expect(layer.x(), {6, 3, 3, 3}, layer.y(), right, "6x4x3x3");
  expect(layer.x(), layer.w(), {2, 6, 6, 7}, right, "2x6x6x6");
  expect(layer.x(), {6, 4, 9, 3}, layer.y(), right,
         "height: the filter spans 9; accepted: up to 8");
  ConvOptions wrong;
  wrong.groups = 0;
  expect(layer.x(), layer.w(), layer.y(), wrong, "groups is 0");
  wrong.groups = 4;
  expect(layer.x(), layer.w(), layer.y(), wrong, "groups is 4, of 4 channels and 6 filters");
  wrong = {};
  wrong.stride = {1, 0};
  expect(layer.x(), layer.w(), layer.y(), wrong, "width: stride 0");
  wrong = {};
  wrong.dilation = {-1, 1};
  expect(layer.x(), layer.w(), layer.y(), wrong, "height: stride 1, padding 0, dilation -1");
  wrong = {};
  wrong.stride = {1, 1, 2};
  expect(layer.x(), layer.w(), layer.y(), wrong,
         "stride[2] is 2, of an axis that the image lacks; accepted: 1");
  wrong = {};
  wrong.padding = {};
  expect(layer.x(), layer.w(), layer.y(), wrong, "padding has 0 numbers; accepted: 1, or 2");
  wrong = {};
  wrong.activation = static_cast<Activation>(9);
  expect(layer.x(), layer.w(), layer.y(), wrong, "activation is 9");
  wrong = {};
  wrong.bias = ConstTensorRef(x.data(), {5});
  expect(layer.x(), layer.w(), layer.y(), wrong, "bias");
  const std::string overlap = message_of([&] {
    conv(context, TensorRef(x.data(), layer.x()), TensorRef(w.data(), layer.w()),
         TensorRef(x.data(), layer.y()));
  });
  EXPECT_NE(overlap.find("overlap"), std::string::npos) << overlap;
}

TEST_P(ConvOn, EmptyTensorsAreLeftAlone) {
  std::vector<float> y(4, 3.0F);
  std::vector<float> w(3 * 2 * 3 * 3);
  conv(context, {nullptr, DType::f32, Extents{0, 2, 4, 4}}, TensorRef(w.data(), {3, 2, 3, 3}),
       TensorRef(y.data(), {0, 3, 2, 2}));
  EXPECT_EQ(y, std::vector<float>(4, 3.0F));
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvOn, testing::Values(Backend::cpu, Backend::simt),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// cuDNN's indices of its FFT and Winograd algorithms, chosen only with the option `winograd`.
TEST(ConvPeers, CudnnMayTransformOnlyWhereItIsTold) {
  const auto transforms = [](cudnn::Pass pass, int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) {
      if (cudnn::is_transform(pass, i)) all.push_back(i);
    }
    return all;
  };
  EXPECT_EQ(transforms(cudnn::Pass::forward, 8), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(transforms(cudnn::Pass::backward_data, 6), (std::vector<int>{2, 3, 4, 5}));
  EXPECT_EQ(transforms(cudnn::Pass::backward_filter, 7), (std::vector<int>{2, 4, 5, 6}));
}

// Windows in the padding alone, and sums that underflow: a term of the padding must not determine
// the sign of zero, since tiles, whose rows depend on the threads, may or may not add such terms.
TEST_P(ConvOn, AZeroSumIsPositive) {
  const std::int64_t images = 2, channels = 3, height = 11, width = 9, filters = 17;
  const std::int64_t out_height = height + 2 * 6 - 2, out_width = width + 2 * 2 - 2;
  std::vector<float> bias(filters, -0.0F);
  for (const bool channels_last : {false, true}) {
    for (const float value : {0.0F, -0.0F, 1.0F}) {
      std::vector<float> x(static_cast<std::size_t>(images * channels * height * width), value);
      std::vector<float> w(static_cast<std::size_t>(filters * channels * 9), -1.0F);
      const auto shape = [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t v) {
        return channels_last ? Extents{n, h, v, c} : Extents{n, c, h, v};
      };
      const Extents y_shape = shape(images, filters, out_height, out_width);
      ConvOptions options{.padding = {6, 2}, .channels_last = channels_last};
      options.bias = ConstTensorRef(bias.data(), {filters});
      std::vector<float> y(static_cast<std::size_t>(y_shape.product()));
      const ConstTensorRef x_ref(x.data(), shape(images, channels, height, width));
      const ConstTensorRef w_ref(w.data(), shape(filters, channels, 3, 3));
      const TensorRef y_ref(y.data(), y_shape);
      for (const std::string& rung :
           rungs_for<Conv>({.x = x_ref, .w = w_ref, .y = y_ref, .options = options}, context)) {
        conv(context, x_ref, w_ref, y_ref, options, {rung});
        const auto negative_zero = [](float z) { return z == 0 && std::signbit(z); };
        EXPECT_EQ(std::count_if(y.begin(), y.end(), negative_zero), 0)
            << rung << ' ' << value << ' ' << channels_last;
      }
    }
  }
}

TEST(ConvCpu, CountsBeyondAllMemoryAreRefused) {
  Context context = Context::cpu(1);
  constexpr std::int64_t most = 0x7fffffff;
  const std::string places = message_of([&] {
    conv(context, {nullptr, DType::f32, Extents{0, 1, most, most, most}},
         {nullptr, DType::f32, Extents{0, 1, 1, 1, 1}},
         {nullptr, DType::f32, Extents{0, 0, most, most, most}});
  });
  EXPECT_NE(places.find("up to 2^62"), std::string::npos) << places;
  // One element, broadcast along 2^58 channels: packing would need too much memory.
  float one = 1;
  std::vector<float> y(4);
  const std::int64_t many = std::int64_t{1} << 58;
  const std::string packed = message_of([&] {
    conv(context, TensorRef(&one, {1, many, 1, 1}, {0, 0, 0, 0}),
         TensorRef(&one, {4, many, 1, 1}, {0, 0, 0, 0}), TensorRef(y.data(), {1, 4, 1, 1}), {},
         {"direct_simd"});
  });
  EXPECT_NE(packed.find("2^63"), std::string::npos) << packed;
}

TEST(ConvFacts, TellExtentsParametersAndReuse) {
  const auto of = [](std::string_view op, const char* problem) {
    std::string all;
    for (const std::string& fact : AnyFacts::of(op, Problem::parse(problem))) all += fact + ' ';
    return all;
  };
  const std::string said = of("conv", "f32 2x4x9x9,out=6,k=3,s=2,p=1,nhwc");
  EXPECT_NE(said.find("y is 2x5x5x6"), std::string::npos) << said;
  EXPECT_NE(said.find("216 weights (0.864 kB), and 6 of a bias"), std::string::npos) << said;
  // 300 elements of y have 36 terms each; x has 648 elements, w 216.
  EXPECT_NE(said.find("1.08e+04 multiply-adds, 36 for"), std::string::npos) << said;
  EXPECT_NE(said.find("of x is used 16.67 times, each element of w is used 50 times"),
            std::string::npos)
      << said;
  EXPECT_EQ(of("conv", "f32 0x4x9x9").find("Reuse"), std::string::npos);
  EXPECT_EQ(said.find("winograd"), std::string::npos);
  EXPECT_NE(of("conv", "f32 2x4x9x9,k=3,winograd").find("rates count the operations of the "),
            std::string::npos);
  EXPECT_EQ(of("gemm", "f32 4x4x4"), "");
}

TEST(ConvolvedExtent, IsPyTorchs) {
  EXPECT_EQ(convolved_extent(224, 7, 2, 3), 112);
  EXPECT_EQ(convolved_extent(8, 3), 6);
  EXPECT_EQ(convolved_extent(13, 3, 1, 2, 2), 13);
  EXPECT_EQ(convolved_extent(5, 2, 4), 1);
  EXPECT_NE(message_of([] { convolved_extent(2, 3); }).find("spans 3"), std::string::npos);
  EXPECT_NE(message_of([] { convolved_extent(0, 1); }).find("extent 0"), std::string::npos);
}

}  // namespace
}  // namespace rung
