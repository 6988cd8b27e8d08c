// SPDX-License-Identifier: Apache-2.0
// Arguments of reduce() as rungs receive them, and the operator's interface to the workbench.
// rung/ops/reduce/reduce.hpp states the contract.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/reduce/reduce.hpp"

namespace rung {

struct RUNG_API Reduce {
  static constexpr std::string_view name = "reduce";
  static constexpr std::string_view summary =
      "y = sum | product | min | max | mean | norm | argmin | argmax of x over axes or segments";
  static constexpr std::string_view problem_help =
      "TYPE NxM...[,options]: f32 16777216   f32 4096x4096,max,axes=1   u8 512x512x3,mean,axes=01\n"
      "options: sum (default) | product | min | max | mean | argmin | argmax | norm,\n"
      "         axes=02 (a digit an axis; default all), keepdims, out=TYPE,\n"
      "         segments=N (of the last axis, ragged), offsets=i32|i64, nan (some NaN in x)";

  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    In offsets = {};  // n + 1 bounds; absent without segments
    Reduction operation = Reduction::sum;
    Extents axes = {};  // axes to reduce, as given
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Validated arguments: y has only the kept axes (segments last); axes are collapsed.
  struct Args : Call {
    AxisSet reduced = 0;
    Collapsed<2> kept;   // x and y over the kept axes; with segments: the axes before the last
    Collapsed<1> terms;  // x over the reduced axes; with segments: the last axis

    [[nodiscard]] bool has_segments() const { return offsets.data != nullptr; }
    [[nodiscard]] std::int64_t segments() const { return offsets.shape[0] - 1; }
    /// Returns y's stride between the results of adjacent segments, in elements.
    [[nodiscard]] std::int64_t segment_step() const { return y.strides[y.rank() - 1]; }
    /// Returns whether the result is an index.
    [[nodiscard]] bool is_arg() const {
      return operation == Reduction::argmin || operation == Reduction::argmax;
    }
    /// Returns the number of results.
    [[nodiscard]] std::int64_t results() const {
      return kept.size() * (has_segments() ? segments() : 1);
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.offsets, "offsets"), out(call.y, "y"));
  }
  static RungList<Reduce>& rungs();
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
