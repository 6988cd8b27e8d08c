// SPDX-License-Identifier: Apache-2.0
// Arguments of histogram() as rungs receive them, and the operator's interface to the workbench.
// The contract: histogram.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/histogram/histogram.hpp"

namespace rung {

struct RUNG_API Histogram {
  static constexpr std::string_view name = "histogram";
  static constexpr std::string_view summary = "counts[b] = number of elements of x in bin b";
  static constexpr std::string_view problem_help =
      "TYPE EXTENTS[,options]: u8 268435456   f32 4096x4096,bins=1024,low=-4,high=4\n"
      "options: bins=N (default 256), low=X, high=X (default: 0 and N; for floats -4 and 4),\n"
      "         edges (N + 1 of them, unevenly spaced), accumulate, wide (i64 counts),\n"
      "         values: uniform, one, skew (90 % one value), sorted, outside (half of them are),\n"
      "         nan (a third of them);\n"
      "         normally distributed otherwise";

  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out counts = {};   // n
    In edges = {};     // n + 1, or not given
    double low = 0.0;  // in Args low < high, rounded to the formula's type
    double high = 0.0;
    bool accumulate = false;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Validated arguments, with x's axes sorted by stride and merged, since the order of elements is
  /// irrelevant: the last axis is the densest, and a transposed matrix is one row. x has at least
  /// one axis; its strides descend (0 counts as the widest), and its data pointer is the lowest
  /// address.
  struct Args : Call {
    [[nodiscard]] std::int64_t bins() const { return counts.shape[0]; }
    [[nodiscard]] bool even() const { return edges.data == nullptr; }
    /// Returns the number of elements of x; validation has checked that the product fits.
    [[nodiscard]] std::int64_t size() const {
      std::int64_t product = 1;
      for (int axis = 0; axis < x.rank(); ++axis) product *= x.shape[axis];
      return product;
    }
    /// Returns whether x is one contiguous piece.
    [[nodiscard]] bool dense() const {
      return x.rank() == 1 && (x.strides[0] == 1 || x.shape[0] <= 1);
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.edges, "edges"), out(call.counts, "counts"));
  }
  static RungList<Histogram>& rungs();
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
