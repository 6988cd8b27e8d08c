// SPDX-License-Identifier: Apache-2.0
// Arguments of transpose() as rungs receive them, and the operator's interface to the workbench.
// The contract: transpose.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/collapse.hpp"
#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/transpose/transpose.hpp"

namespace rung {

struct RUNG_API Transpose {
  static constexpr std::string_view name = "transpose";
  static constexpr std::string_view summary = "y = x with its axes in another order";
  static constexpr std::string_view problem_help =
      "TYPE EXTENTS OF x[,order=AXES]: f32 8192x8192   u8 16x1000x3   f16 8x128x12x64,order=0213\n"
      "order: the axis of x that each axis of y is, a digit each; default: the last two exchanged";

  /// Canonical form of a transpose: y(j, i) = x(i, j) for each matrix of a batch. Axes that x and y
  /// traverse in the same order are merged. Rows are the axis along which y is densest, columns the
  /// axis along which x is densest: a transpose reads along one and writes along the other. If an
  /// axis is dense in x and y, adjacent elements stay together: 2, 4, 8 or 16 of their bytes become
  /// one opaque element if alignment allows (pairs of f64, for example), and the rest of the axis
  /// is a run. Strides count opaque elements.
  struct Moves {
    int element_bytes = 1;  // 1, 2, 4, 8 or 16
    std::int64_t run = 1;
    std::int64_t rows = 1, columns = 1;    // extents of x
    std::int64_t x_row = 0, x_column = 0;  // strides in x of i and of j
    std::int64_t y_row = 0, y_column = 0;  // strides in y of j and of i
    Collapsed<2> batch;                    // batch axes of y (tensor 0) and x (tensor 1)

    [[nodiscard]] std::int64_t matrices() const { return batch.size(); }
    [[nodiscard]] std::int64_t elements() const { return run * rows * columns * matrices(); }
    [[nodiscard]] std::int64_t bytes() const { return elements() * element_bytes; }
    [[nodiscard]] bool empty() const { return elements() == 0; }
    /// Returns whether elements are single, x is dense along its rows and y along its rows: the
    /// layout that tiles require. A single row or column need be dense along the other axis only.
    [[nodiscard]] bool dense() const {
      return run == 1 && (columns == 1 || x_column == 1) && (rows == 1 || y_column == 1);
    }
  };

  template <class In, class Out>
  struct CallOf {
    In x = {};
    Out y = {};
    Extents order = {};  // in Args a permutation of all axes
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  struct Args : Call {
    /// Valid for new data pointers too: repeats() checks alignment up to 16 bytes.
    Moves moves;
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), out(call.y, "y"));
  }
  static RungList<Transpose>& rungs();
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
