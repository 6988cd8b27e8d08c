// SPDX-License-Identifier: Apache-2.0
// reduce: operator object, list of rungs, and validation of arguments.
#include "rung/ops/reduce/op/reduce.hpp"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <string>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Reduce> rung_list;
const Operator<Reduce> self;

[[noreturn]] void refuse(const std::string& message) { reject(Reduce::name, message); }

/// Returns the set of axes to reduce.
AxisSet reduced_axes(const Reduce::Args& args) {
  const int rank = args.x.rank();
  AxisSet set = 0;
  if (args.has_segments()) {
    if (rank == 0) refuse("x has no axis; accepted with offsets: 1 to 8 axes");
    const AxisSet last = AxisSet{1} << (rank - 1);
    const bool only_last =
        args.axes.rank == 0 ||
        (args.axes.rank == 1 && require_axis(Reduce::name, args.axes[0], rank) == rank - 1);
    if (!only_last) {
      refuse(fmt::format("axes are {} with offsets; accepted: {}, the last axis",
                         to_string(args.axes), rank - 1));
    }
    return last;
  }
  if (args.axes.rank == 0) return (AxisSet{1} << rank) - 1;
  for (int i = 0; i < args.axes.rank; ++i) {
    const AxisSet bit = AxisSet{1} << require_axis(Reduce::name, args.axes[i], rank);
    if ((set & bit) != 0) {
      refuse(fmt::format("axes name axis {} twice; accepted: each at most once", args.axes[i]));
    }
    set |= bit;
  }
  return set;
}

/// Returns y without its reduced axes, for either form of y's shape.
TensorRef without_reduced(const Reduce::Args& args) {
  const ConstTensorRef& x = args.x;
  const TensorRef& y = args.y;
  const AxisSet reduced = args.reduced;
  const bool segments = args.has_segments();
  Extents wanted;   // the kept axes
  Extents keeping;  // all axes, reduced ones with extent 1
  keeping.rank = x.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool gone = (reduced >> axis & 1) != 0;
    keeping[axis] = gone ? 1 : x.shape[axis];
    if (!gone) wanted[wanted.rank++] = x.shape[axis];
  }
  if (segments) {
    const std::int64_t count = args.segments();
    wanted[wanted.rank++] = count;
    keeping[x.rank() - 1] = count;
  }
  if (y.shape == wanted) return y;
  TensorRef result = y;
  result.shape = wanted;
  result.strides = wanted;
  if (y.shape == keeping) {
    int to = 0;
    for (int axis = 0; axis < x.rank(); ++axis) {
      if (segments || (reduced >> axis & 1) == 0) result.strides[to++] = y.strides[axis];
    }
    return result;
  }
  if (wanted.rank == 0 && !y.empty() && y.size() == 1) return result;
  refuse(fmt::format("y is {}; accepted for x of {} over these axes: {} or {}",
                     y.rank() == 0 ? "a single element" : to_string(y.shape), to_string(x.shape),
                     wanted.rank == 0 ? "any tensor of one element" : to_string(wanted),
                     to_string(keeping)));
}

void check_types(const Reduce::Args& args) {
  using enum DType;
  const DType x = args.x.dtype;
  constexpr std::string_view op = Reduce::name;
  require_dtype(op, args.x, "x", {f32, f64, f16, bf16, i8, u8, u16, i32, i64});
  if (args.has_segments()) require_dtype(op, args.offsets, "offsets", {i32, i64});
  const bool floating = is_floating(x);
  switch (args.operation) {
    case Reduction::argmin:
    case Reduction::argmax:
      return require_dtype(op, args.y, "y", {i32, i64});
    case Reduction::min:
    case Reduction::max:
      return require_dtype(op, args.y, "y", {x});
    case Reduction::norm:
      require_dtype(op, args.x, "x", {f32, f64, f16, bf16});
      break;
    case Reduction::mean:
      if (!floating) return require_dtype(op, args.y, "y", {f32, f64});
      break;
    case Reduction::sum:
    case Reduction::product:
      if (x == i64) return require_dtype(op, args.y, "y", {i64});
      if (!floating) return require_dtype(op, args.y, "y", {x, i32, i64});
      break;
  }
  if (size_of(x) == 2) return require_dtype(op, args.y, "y", {x, f32});
  require_dtype(op, args.y, "y", {x});
}

void check_sizes(const Reduce::Args& args) {
  const bool needs_terms = args.is_arg() || args.operation == Reduction::min ||
                           args.operation == Reduction::max || args.operation == Reduction::mean;
  if (needs_terms && !args.has_segments() && args.terms.size() == 0 && args.results() > 0) {
    refuse(fmt::format("{} over no elements: x is {}; accepted: at least one term a result",
                       to_string(args.operation), to_string(args.x.shape)));
  }
  if (args.is_arg() && args.y.dtype == DType::i32 &&
      args.terms.size() > std::numeric_limits<std::int32_t>::max()) {
    refuse(
        fmt::format("y is i32 for an index among {} elements; accepted: i64, or i32 for up to "
                    "2147483647",
                    args.terms.size()));
  }
}

}  // namespace

std::string_view to_string(Reduction operation) noexcept {
  constexpr std::string_view names[] = {"sum",  "product", "min",    "max",
                                        "mean", "argmin",  "argmax", "norm"};
  const auto index = static_cast<std::size_t>(operation);
  return index < std::size(names) ? names[index] : "unknown operation";
}

DType reduced_dtype(Reduction operation, DType x) noexcept {
  switch (operation) {
    case Reduction::argmin:
    case Reduction::argmax:
      return DType::i64;
    case Reduction::mean:
      return is_floating(x) ? x : DType::f64;
    case Reduction::sum:
    case Reduction::product:
      return is_floating(x) ? x : DType::i64;
    default:
      return x;
  }
}

RungList<Reduce>& Reduce::rungs() { return rung_list; }

void Reduce::bind(Args& args) {
  require_choice(name, args.operation, Reduction::norm, "operation");
  require_list(name, args.axes, "axes");
  if (is_given(args.offsets) && (args.offsets.rank() != 1 || args.offsets.shape[0] < 1)) {
    refuse(fmt::format("offsets are {}; accepted: n + 1 numbers for n segments",
                       to_string(args.offsets.shape)));
  }
  args.reduced = reduced_axes(args);
  args.y = without_reduced(args);
  // y's strides, one per axis of x; strides of reduced axes are never read.
  Extents y_strides = args.x.shape;
  for (int axis = 0, from = 0; axis < args.x.rank(); ++axis) {
    const bool gone = (args.reduced >> axis & 1) != 0;
    y_strides[axis] = gone ? 0 : args.y.strides[from++];
  }
  args.kept =
      collapse<2>(args.x.shape, {args.x.strides, y_strides}, ~args.reduced, AxisOrder::by_stride);
  // An index search numbers terms in the original order of the axes.
  args.terms = collapse<1>(args.x.shape, {args.x.strides}, args.reduced,
                           args.is_arg() ? AxisOrder::logical : AxisOrder::by_stride);
  check_types(args);
  check_sizes(args);
}

void reduce(Context& context, const ConstTensorRef& x, const TensorRef& y,
            const ReduceOptions& options, Pick pick) {
  call<Reduce>(context, pick, [&]<class Call>() {
    return Call{.x = x,
                .y = y,
                .offsets = options.offsets,
                .operation = options.operation,
                .axes = options.axes};
  });
}

}  // namespace rung
