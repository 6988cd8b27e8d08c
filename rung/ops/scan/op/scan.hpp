// SPDX-License-Identifier: Apache-2.0
// Arguments of scan() as rungs receive them, and the operator's interface to the workbench.
// rung/ops/scan/scan.hpp states the contract.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/scan/scan.hpp"

namespace rung {

struct RUNG_API Scan {
  static constexpr std::string_view name = "scan";
  static constexpr std::string_view summary = "y[i] = x[0] + ... + x[i] along an axis; min, max, *";
  static constexpr std::string_view problem_help =
      "TYPE NxM...[,options]: f32 134217728   u8 4096x4096,axis=0,max   f32 1000000,segments=5000\n"
      "options: sum (default) | product | min | max, axis=N (default the last), exclusive, "
      "reverse,\n"
      "         segments=N (ragged), offsets=i32|i64 (their type), in_place, nan (some NaN in x)";

  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    In offsets = {};  // positions, counted from the axis's first element in memory
    ScanOperation operation = ScanOperation::sum;
    int axis = -1;  // in Args: non-negative, the scan axis's original index
    bool exclusive = false;
    bool reverse = false;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// Validated arguments: the scan axis is last, and a reversed scan runs forward along a negative
  /// stride. The other axes, collapsed, number the lines.
  struct Args : Call {
    Collapsed<2> lines;  // x and y over the other axes

    [[nodiscard]] std::int64_t length() const { return y.shape[y.rank() - 1]; }
    [[nodiscard]] std::int64_t x_stride() const { return x.strides[x.rank() - 1]; }
    [[nodiscard]] std::int64_t y_stride() const { return y.strides[y.rank() - 1]; }
    [[nodiscard]] bool has_segments() const { return offsets.data != nullptr; }
    /// Returns whether consecutive elements of a line, in scan order, have stride 1 in x and y.
    [[nodiscard]] bool is_contiguous() const {
      return length() <= 1 || (x_stride() == 1 && y_stride() == 1);
    }
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.offsets, "offsets"), out(call.y, "y").may_be("x"));
  }
  static RungList<Scan>& rungs();
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
