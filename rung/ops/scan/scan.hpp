// SPDX-License-Identifier: Apache-2.0
// scan: running sums, products, minima and maxima along one axis; whole, or segment by segment.
//
//   inclusive   y[i] = x[s] + ... + x[i]
//   exclusive   y[i] = x[s] + ... + x[i - 1], the identity at i = s
//   reverse     the same from the other end: y[i] = x[i] + ... + x[e - 1]
//
// with + one of sum, product, min, max and [s, e) the segment that i is in: the whole axis where
// no offsets are given. Other functors, non-commutative ones too: scan.cuh, for C++ programs.
//
// Shapes   x and y: the same, 1 to 8 axes. axis: negative counts from the end.
// Segments offsets (i32 or i64, one axis): positions along the scan axis at which a segment begins.
//          Order and repetition do not matter, positions outside the axis are ignored, so that
//          lists of starts and CSR lists (n + 1 numbers, the last one the end) both serve, and no
//          contents of offsets are an error. Elements before the first offset are a segment. All
//          lines along the axis are cut alike.
// Strides  any, zero (broadcast) in x and offsets too; y must not overlap itself.
// Types    x and y alike: f32 f64 f16 bf16 i8 u8 u16 i32 i64. f16 and bf16 are combined in f32, and
//          each output is rounded once.
// Integers sums and products are exact modulo 2^b, b the bits of the type (two's complement: they
//          wrap).
// Identity 0 for sum, 1 for product, +infinity or the largest integer for min, -infinity or the
//          lowest integer for max.
// NaN      from a NaN on, to the end of the segment, results are NaN, of min and max too; likewise
//          from inf - inf or 0 inf on, infinities being IEEE's. A zero may have either sign.
// Accuracy u the unit roundoff of f32 (f64 for f64), before rounding to f16 or bf16:
//            sum       |error of y[i]| <= k u / (1 - k u) (|x[s]| + ... + |x[i]|), k = i - s for
//                      any order of adding [N. Higham, Accuracy and Stability, 2nd ed., 4.2]. simd
//                      and the threaded CPU rungs, in chunks of c (64 KiB; 256 KiB of lines of
//                      4 MiB), have k <= n / c + 2 (256 + c / 256): 6.5e-5 for 2^22 positive f32.
//            product   relative error <= k u / (1 - k u), where no product of a run of elements
//                      overflows or underflows on the way.
//            min, max  exact.
// Repeats  the same bits run to run and for any number of threads, on one machine, for one layout
//          (shape, strides): chunks have fixed sizes, and what is before a chunk is combined in
//          one fixed order however the threads or blocks are timed.
// Nothing  an axis or a tensor without elements: nothing is written.
// Aliasing y may be x itself (same place, shape and strides); otherwise they must be disjoint. y
//          must not overlap offsets. Overlap is decided by address ranges, from the lowest to the
//          highest byte that a tensor touches, so that tensors whose elements interleave are
//          refused.
// Errors   Error(invalid_argument) for shapes, axis, types, aliasing; Error(unsupported) where no
//          rung of the backend takes the call, with every rung's reason.
// Source   G. Blelloch, Prefix Sums and Their Applications, 1990.
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

enum class ScanOperation : std::uint8_t { sum, product, min, max };

struct ScanOptions {
  ScanOperation operation = ScanOperation::sum;  // combines the elements of a prefix
  int axis = -1;
  bool exclusive = false;
  bool reverse = false;
  ConstTensorRef offsets = {};  // left out: one segment
};

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
    int axis = -1;  // in Args from the front: where the scan axis stood
    bool exclusive = false;
    bool reverse = false;
    bool operator==(const CallOf&) const = default;
  };
  using Call = CallOf<ConstTensorRef, TensorRef>;

  /// The scan axis stands last, and a reversed scan runs forward along a negative stride. The other
  /// axes, collapsed, are the lines.
  struct Args : Call {
    Collapsed<2> lines;  // x and y over the other axes

    [[nodiscard]] std::int64_t length() const { return y.shape[y.rank() - 1]; }
    [[nodiscard]] std::int64_t x_stride() const { return x.strides[x.rank() - 1]; }
    [[nodiscard]] std::int64_t y_stride() const { return y.strides[y.rank() - 1]; }
    [[nodiscard]] bool has_segments() const { return offsets.data != nullptr; }
    /// Whether elements of a line are adjacent, in the order in which they are combined.
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
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

RUNG_API void scan(Context& context, const ConstTensorRef& x, const TensorRef& y,
                   const ScanOptions& options = {}, Pick pick = best);

}  // namespace rung
