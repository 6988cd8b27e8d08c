// SPDX-License-Identifier: Apache-2.0
// Kernel arguments of stencil() and its interface to the workbench. The contract: stencil.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/stencil/stencil.hpp"

namespace rung {

struct RUNG_API Stencil {
  static constexpr std::string_view name = "stencil";
  static constexpr std::string_view summary =
      "y = x correlated or convolved with a small mask, or summed over a window";
  static constexpr std::string_view problem_help =
      "TYPE SHAPE,mask=EXTENTS|window=EXTENTS[,options]: f32 8192x8192,mask=3x3\n"
      "     u8 4x1080x1920,window=5x5,scale=0.04,edge=clamp   f32 256x256x256,mask=3x3x3\n"
      "options: edge=zero|clamp|mirror|wrap, separable (the mask as one vector per axis),\n"
      "         convolution, anchor=INDEX (0x1), scale=X, iterations=N, out=f32 (from f16, bf16, "
      "u8)";

  static constexpr int max_taps = 31;  // of the mask, per axis

  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef mask = {};                             // or vectors, or a window
    ConstTensorRef across = {}, down = {}, through = {};  // along the last axis, the one before ...
    TensorRef y = {};
    Extents window = {};  // without mask and vectors
    Extents anchor = {};
    StencilEdge edge = StencilEdge::zero;
    bool convolution = false;
    double scale = 1.0;
    int iterations = 1;
    bool operator==(const Call&) const = default;
  };

  /// An axis of the array. Missing axes have extent 1 in the array and in the mask.
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t x = 0, y = 0;  // strides
    int taps = 1;               // extent of the mask
    int origin = 0;             // tap t of element i reads x[i + t - origin]
  };

  enum class Weights : std::uint8_t { mask, separable, ones };

  /// Kernel arguments: always three axes (depth, rows, columns) and always a correlation; the mask
  /// and anchor of a convolution are reversed.
  struct Args : Call {
    Axis axis[3];
    Collapsed<2> batch;  // the arrays; strides of x (tensor 0) and y (tensor 1)
    int axes = 1;        // rank of the mask, before missing axes were added
    Weights weights = Weights::ones;

    [[nodiscard]] const Axis& depth() const { return axis[0]; }
    [[nodiscard]] const Axis& rows() const { return axis[1]; }
    [[nodiscard]] const Axis& columns() const { return axis[2]; }
    [[nodiscard]] std::int64_t arrays() const { return batch.size(); }
    [[nodiscard]] int taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
    [[nodiscard]] std::int64_t elements() const {
      return arrays() * depth().extent * rows().extent * columns().extent;
    }
    /// Returns true if the weights are vectors or a window, which are summed one axis after the
    /// other.
    [[nodiscard]] bool is_separable() const { return weights != Weights::mask; }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.mask, "mask"), optional_in(call.across, "across"),
          optional_in(call.down, "down"), optional_in(call.through, "through"), out(call.y, "y"));
  }
  static RungList<Stencil>& rungs();
  static void bind(Args& args);

  static Cost cost(const Args& args);
  static void reference(const Args& args, Oracle& oracle);
  /// Returns the operations of the oracle, which computes, in each iteration, all rows that the
  /// judged rows depend on.
  static double reference_operations(const Args& args, double share);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static Problem describe(const Call& call);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

}  // namespace rung
