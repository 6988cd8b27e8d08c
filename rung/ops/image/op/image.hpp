// SPDX-License-Identifier: Apache-2.0
// Kernel arguments of image() and its interface to the workbench. The contract: image.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/image/image.hpp"

namespace rung {

struct RUNG_API Image {
  static constexpr std::string_view name = "image";
  static constexpr std::string_view summary = "grey, blurred, sharpened pictures and their edges";
  static constexpr std::string_view problem_help =
      "TYPE HxWxC[,options]: u8 1080x1920x3   u8 4x3x480x640,planar,gaussian,radius=3\n"
      "options: grey (default) | box | gaussian | unsharp | sobel, planar (CxHxW),\n"
      "         weights=bt601|bt709|tenths|tenths_by_term and opaque (y without alpha) of grey,\n"
      "         radius=N (0 to 15, default 2), sigma=X, amount=X (of unsharp),\n"
      "         edge=clamp|zero and truncate (of box)";

  static constexpr int max_radius = 15;

  struct Call {
    ConstTensorRef x = {};
    TensorRef y = {};
    ImageOptions options = {};
    bool operator==(const Call&) const = default;
  };

  struct Strides {
    std::int64_t row = 0, column = 0, channel = 0;
  };

  struct Args : Call {
    std::int64_t rows = 0, columns = 0;
    int channels = 0;      // of x
    int out_channels = 0;  // of y
    Strides from, to;      // of x, of y
    Collapsed<2> pictures;
    // Blur weights, by distance from the center; radius 0: no blur.
    int radius = 0;
    float blur[max_radius + 1] = {};             // f32; 1 for box, which divides at the end
    std::int32_t blur_256[max_radius + 1] = {};  // u8, in units of 1/256; 1 for box
    std::int32_t amount_256 = 0;

    [[nodiscard]] ImageFilter filter() const { return options.filter; }
    [[nodiscard]] int taps() const { return 2 * radius + 1; }
    [[nodiscard]] std::int64_t pixels() const { return pictures.size() * rows * columns; }
    /// Returns the index of the alpha channel if the filter copies it, else -1.
    [[nodiscard]] int copied_alpha() const {
      const bool blurs = filter() == ImageFilter::box || filter() == ImageFilter::gaussian;
      return !blurs && channels % 2 == 0 && out_channels > 1 ? channels - 1 : -1;
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y"));
  }
  static RungList<Image>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static Problem describe(const Call& call);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

}  // namespace rung
