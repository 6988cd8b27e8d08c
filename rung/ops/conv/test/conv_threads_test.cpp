// SPDX-License-Identifier: Apache-2.0
// conv on a CPU returns the same bits, including signs of zeros, for any number of threads.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rung/ops/conv/shared/test/conv_test.hpp"

namespace rung {
namespace {

using namespace conv_test;

TEST(ConvCpu, AnyNumberOfThreadsGivesTheSameBits) {
  const Layer layer{
      .images = 2, .channels = 40, .height = 17, .width = 19, .filters = 37, .padding = 1};
  const auto x = random_values(layer.x().product(), 17);
  const auto w = random_values(layer.w().product(), 18);
  for (const bool winograd : {false, true}) {
    ConvOptions options = layer.options();
    options.winograd = winograd;
    std::vector<float> one;
    for (const int threads : {1, 2, 3, 7}) {
      Context context = Context::cpu(threads);
      const auto y = convolved(context, layer, x, w, options);
      if (threads == 1) one = y;
      EXPECT_EQ(y, one) << threads;
    }
  }
}

TEST(ConvCpu, AnyNumberOfThreadsGivesTheSameSignsOfZero) {
  const std::int64_t images = 1, channels = 19, height = 61, width = 41, filters = 33;
  const std::int64_t out_height = height + 2 * 9 - 2, out_width = width;
  std::vector<float> bias(filters, -0.0F);
  // Products below the range: sums underflow to -0, which a term of the padding, +0, changes to +0.
  std::vector<float> x(static_cast<std::size_t>(images * channels * height * width), -1e-30F);
  std::vector<float> w(static_cast<std::size_t>(filters * channels * 9), 1e-30F);
  const ConstTensorRef x_ref(x.data(), {images, height, width, channels});
  const ConstTensorRef w_ref(w.data(), {filters, 3, 3, channels});
  std::vector<float> y(static_cast<std::size_t>(images * filters * out_height * out_width));
  const TensorRef y_ref(y.data(), {images, out_height, out_width, filters});
  for (const bool biased : {false, true}) {
    ConvOptions options{.padding = {9, 1}, .channels_last = true};
    if (biased) options.bias = ConstTensorRef(bias.data(), {filters});
    Context one_thread = Context::cpu(1);
    for (const std::string& rung :
         rungs_for<Conv>({.x = x_ref, .w = w_ref, .y = y_ref, .options = options}, one_thread)) {
      std::vector<std::uint32_t> one;
      for (const int threads : {1, 2, 3, 7, 16}) {
        Context context = Context::cpu(threads);
        conv(context, x_ref, w_ref, y_ref, options, {rung});
        std::vector<std::uint32_t> bits(y.size());
        std::memcpy(bits.data(), y.data(), y.size() * sizeof(float));
        if (threads == 1) one = bits;
        EXPECT_EQ(bits, one) << rung << ' ' << threads << ' ' << biased;
      }
    }
  }
}

// Bands of rows, planes per stride and 1 x 1 products, however they are divided among threads.
TEST(ConvCpu, BandsAndProductsGiveTheSameBitsToo) {
  const Layer planes{.images = 3,
                     .channels = 5,
                     .height = 61,
                     .width = 30,
                     .filters = 7,
                     .kernel = 5,
                     .stride = 2,
                     .padding = 2};
  const Layer product{
      .images = 2, .channels = 70, .height = 9, .width = 13, .filters = 33, .kernel = 1};
  for (const Layer& layer : {planes, product}) {
    const auto x = random_values(layer.x().product(), 19);
    const auto w = random_values(layer.w().product(), 20);
    std::vector<float> one;
    for (const int threads : {1, 2, 5}) {
      Context context = Context::cpu(threads);
      const auto y = convolved(context, layer, x, w, layer.options());
      if (threads == 1) one = y;
      EXPECT_EQ(y, one) << threads;
    }
  }
}

TEST(ConvCpu, ProductsWithChannelsLastGiveTheSameBitsToo) {
  const std::int64_t images = 2, channels = 16, height = 61, width = 50, filters = 29;
  const auto last = [&](std::int64_t c) { return Extents{height * width * c, 1, width * c, c}; };
  auto x = random_values(images * channels * height * width, 21);
  auto w = random_values(filters * channels, 22);
  std::vector<float> one;
  for (const int threads : {1, 2, 5}) {
    Context context = Context::cpu(threads);
    std::vector<float> y(static_cast<std::size_t>(images * filters * height * width));
    conv(context, TensorRef(x.data(), {images, channels, height, width}, last(channels)),
         TensorRef(w.data(), {filters, channels, 1, 1}),
         TensorRef(y.data(), {images, filters, height, width}, last(filters)), {},
         {"pointwise_gemm"});
    if (threads == 1) one = y;
    EXPECT_EQ(y, one) << threads;
  }
}

}  // namespace
}  // namespace rung
