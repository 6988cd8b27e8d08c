// SPDX-License-Identifier: Apache-2.0
// stencil: correlation or convolution of arrays of 1, 2 or 3 axes with a small mask; box filters.
//
//   correlation  y[i] = s sum_k w[k] x[i + k - a]
//   convolution  y[i] = s sum_k w[k] x[i - k + a]      the mask turned round in every axis
//
// for every element i of an array, k over the mask, a the anchor: the element of the mask that lies
// on i. Indices have as many axes as the mask.
//
// Mask     w has 1, 2 or 3 axes, 1 to 31 elements a side, odd or even, in any layout; finite
//          values. By default its anchor is the middle: extent / 2, rounded down. Two other ways
//          of giving it: one vector per axis, whose product it is (stencil_separable), and a window
//          without a mask, every element of which weighs 1 (a box filter; scale = 1 / size is a
//          mean). On a CPU that is at most 8 additions per element along rows, and 3 along each
//          other axis.
// Edges    what x[j] is where j is outside the array, n its extent along an axis:
//            zero    0
//            clamp   the nearest element:            a a a | a b c d | d d d
//            mirror  reflected about the outermost:  d c b | a b c d | c b a
//            wrap    periodic:                       b c d | a b c d | a b c
//          per axis; also where the mask is larger than the array.
// Shapes   x and y alike, of up to 8 axes. The last axes are the array's, as many as the mask has;
//          those in front are a batch of arrays. Empty tensors: nothing is written.
// Strides  any, zero (broadcast) in what is read too; y must not overlap itself.
// Types    x f32, f64, f16, bf16 or u8; y the same, or f32 for f16, bf16 and u8. w and sums are
//          f32, for f64 f64. A sum becomes u8 rounded to nearest, ties to even, and clamped to 0
//          to 255 (NaN: 0).
// Iterations  the result takes the place of x, so many times. In between values are rounded to y's
//          type: n iterations give what n calls give.
// Aliasing y must not overlap x or a mask: there is no stencil in place. Overlap is decided by
//          address ranges, from the lowest to the highest byte that a tensor touches, so that
//          tensors whose elements interleave are refused.
// Accuracy with u the unit roundoff of the sums' type and K the number of the mask's elements:
//          |error| <= (K + 4) u |s| sum_k |w[k] x[.]|, plus one rounding to y's type; sums are made
//          of additions alone, so that an infinity or NaN reaches the elements whose window
//          contains it, and no others. Of several iterations: the same for each, and what the
//          iteration in front was off, times |s| sum_k |w[k]|.
// Repeats  the same bits from run to run, and for any number of threads.
// Errors   Error(invalid_argument) for shapes, types, the extents of mask, window and anchor, more
//          than one of mask, vectors and window, iterations < 1, a scale that is not finite,
//          aliasing.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapters 7
//          (convolution) and 8 (stencil); edges as SciPy's ndimage names them (clamp: nearest).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/context.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"

namespace rung {

enum class StencilEdge : std::uint8_t { zero, clamp, mirror, wrap };

struct StencilOptions {
  Extents window = {};  // instead of a mask: the extents of a box
  Extents anchor = {};  // rank 0: the middle
  StencilEdge edge = StencilEdge::zero;  // value of x outside the array
  bool convolution = false;
  double scale = 1.0;  // s
  int iterations = 1;  // applications; each reads the result of the one before
};

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

  static constexpr int max_taps = 31;  // of the mask, along an axis

  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef mask = {};                             // or
    ConstTensorRef across = {}, down = {}, through = {};  // along the last axis, the one before ...
    TensorRef y = {};
    Extents window = {};  // or
    Extents anchor = {};
    StencilEdge edge = StencilEdge::zero;
    bool convolution = false;
    double scale = 1.0;
    int iterations = 1;
    bool operator==(const Call&) const = default;
  };

  /// An axis of the array; those that it lacks have one element, and so has the mask.
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t x = 0, y = 0;  // strides
    int taps = 1;               // of the mask
    int origin = 0;             // tap t of element i reads x[i + t - origin]
  };

  enum class Weights : std::uint8_t { mask, separable, ones };

  /// Always three axes - depth, rows, columns - and always a correlation: of a convolution, mask
  /// and anchor are turned round. A mask has three axes.
  struct Args : Call {
    Axis axis[3];
    Collapsed<2> batch;  // arrays, of x (tensor 0) and y (tensor 1)
    int axes = 1;        // that the array really has
    Weights weights = Weights::ones;

    [[nodiscard]] const Axis& depth() const { return axis[0]; }
    [[nodiscard]] const Axis& rows() const { return axis[1]; }
    [[nodiscard]] const Axis& columns() const { return axis[2]; }
    [[nodiscard]] std::int64_t arrays() const { return batch.size(); }
    [[nodiscard]] int taps() const { return axis[0].taps * axis[1].taps * axis[2].taps; }
    [[nodiscard]] std::int64_t elements() const {
      return arrays() * depth().extent * rows().extent * columns().extent;
    }
    /// Whether the vectors, or the columns of a window, are summed one axis after the other.
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
  /// Counts, in each of several iterations, all rows that those judged depend on.
  static double reference_operations(const Args& args, double share);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

/// With a mask, or with options.window and no mask ({}).
RUNG_API void stencil(Context& context, const ConstTensorRef& x, const ConstTensorRef& mask,
                      const TensorRef& y, const StencilOptions& options = {}, Pick pick = best);

/// With the mask w[k, j, i] = through[k] down[j] across[i]; of an array of two axes, or one, the
/// vectors that it has no axis for are left out ({}).
RUNG_API void stencil_separable(Context& context, const ConstTensorRef& x,
                                const ConstTensorRef& across, const ConstTensorRef& down,
                                const ConstTensorRef& through, const TensorRef& y,
                                const StencilOptions& options = {}, Pick pick = best);

}  // namespace rung
