// SPDX-License-Identifier: Apache-2.0
// conv's GPU rungs in the simulator, on layers that select other branches: other tiles, split
// terms, long f16 sums.
#include <algorithm>

#include "rung/ops/conv/shared/test/conv_test.hpp"

namespace rung {
namespace {

using namespace conv_test;

// The pixel counts make each tile the best choice for the SMs of the simulated H200.
TEST(ConvSimt, EveryTileOfTheAsynchronousProductIsRight) {
  Context context = Context::simt();
  Context host = Context::cpu();
  for (const auto& [filters, width] : {std::pair{70, 170}, {5, 170}, {5, 80}, {5, 9}}) {
    const Layer layer{
        .images = 1, .channels = 9, .height = 167, .width = width, .filters = filters, .kernel = 1};
    const auto x = whole_values(layer.x().product(), 30);
    const auto w = whole_values(layer.w().product(), 31);
    EXPECT_EQ(convolved(context, layer, x, w, layer.options(), "implicit_gemm_async"),
              convolved(host, layer, x, w, layer.options()))
        << filters << ' ' << width;
  }
}

// 132 tiles of pixels: a tile with as many filters as the layer takes one wave.
TEST(ConvSimt, WideTilesOfTensorCoresAreRight) {
  constexpr std::int64_t pixels = 132 * 128 - 5;
  constexpr std::int64_t channels = 8;
  Context context = Context::simt();
  Context host = Context::cpu();
  for (const std::int64_t filters : {320, 192}) {
    const auto halves = [](const std::vector<float>& values) {
      return std::vector<bf16>(values.begin(), values.end());
    };
    const auto x = halves(whole_values(pixels * channels, 37));
    const auto w = halves(whole_values(filters * channels, 38));
    const auto y_of = [&](Context& on, std::string_view rung) {
      std::vector<bf16> y(static_cast<std::size_t>(pixels * filters));
      conv(on, ConstTensorRef(x.data(), {1, 1, pixels, channels}),
           ConstTensorRef(w.data(), {filters, 1, 1, channels}),
           TensorRef(y.data(), {1, 1, pixels, filters}), {.channels_last = true}, {rung});
      return std::vector<float>(y.begin(), y.end());
    };
    EXPECT_EQ(y_of(context, "implicit_gemm_tma"), y_of(host, "")) << filters;
  }
}

// Few tiles of many terms: blocks split the terms. Sums of small integers are exact in any order.
TEST(ConvSimt, BlocksShareTheTermsOfSmallLayers) {
  Context context = Context::simt();
  Context host = Context::cpu(1);
  const Layer layer{.images = 2,
                    .channels = 131,
                    .height = 9,
                    .width = 8,
                    .filters = 10,
                    .stride = 2,
                    .padding = 1,
                    .groups = 1};
  const auto x = whole_values(layer.x().product(), 32);
  const auto w = whole_values(layer.w().product(), 33);
  const auto bias = whole_values(layer.filters, 34);
  ConvOptions options = layer.options();
  options.bias = ConstTensorRef(bias.data(), {layer.filters});
  options.activation = Activation::relu;
  EXPECT_EQ(convolved(context, layer, x, w, options, "implicit_gemm"),
            convolved(host, layer, x, w, options, "naive"));
}

// More terms per slice than the 256 entries of a block's table: the block decodes a second table.
TEST(ConvSimt, ABlockDecodesItsTermsAgain) {
  Context context = Context::simt();
  Context host = Context::cpu();
  const Layer layer{
      .images = 34, .channels = 4000, .height = 8, .width = 8, .filters = 3, .kernel = 1};
  const auto x = whole_values(layer.x().product(), 35);
  const auto w = whole_values(layer.w().product(), 36);
  EXPECT_EQ(convolved(context, layer, x, w, layer.options(), "implicit_gemm"),
            convolved(host, layer, x, w, layer.options()));
}

// A sum in f16 alone stops at 2048 ones, since the next f16 number is 2050.
TEST(ConvSimt, SumsOfHalvesDoNotStopGrowing) {
  constexpr std::int64_t channels = 8192;
  Context context = Context::simt();
  const std::vector<f16> ones(channels, f16(1.0F));
  f16 y;
  const Conv::Call call{.x = ConstTensorRef(ones.data(), {1, 1, 1, channels}),
                        .w = ConstTensorRef(ones.data(), {1, 1, 1, channels}),
                        .y = TensorRef(&y, {1, 1, 1, 1}),
                        .options = {.channels_last = true}};
  const auto names = rungs_for<Conv>(call, context);
  EXPECT_NE(std::find(names.begin(), names.end(), "f16_arithmetic"), names.end());
  for (const std::string& name : names) {
    y = f16(-1.0F);
    conv(context, call.x, call.w, call.y, call.options, {name});
    EXPECT_EQ(static_cast<float>(y), 8192.0F) << name;
  }
}

}  // namespace
}  // namespace rung
