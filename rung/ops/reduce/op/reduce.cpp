// SPDX-License-Identifier: Apache-2.0
// reduce: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/reduce/reduce.hpp"

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <string>

#include "rung/core/any_operator.hpp"
#include "rung/core/require.hpp"

namespace rung {
namespace {

// Initialised before any dynamic initialiser runs, so rungs of any file may push themselves.
constinit RungList<Reduce> rung_list;
const Operator<Reduce> self;

[[noreturn]] void refuse(const std::string& message) { reject(Reduce::name, message); }

/// The axes to reduce as a set.
AxisSet reduced_axes(const ConstTensorRef& x, const ReduceOptions& options) {
  const int rank = x.rank();
  AxisSet set = 0;
  if (options.offsets.data != nullptr) {
    if (rank == 0) refuse("x has no axis; accepted with offsets: 1 to 8 axes");
    const AxisSet last = AxisSet{1} << (rank - 1);
    const bool only_last =
        options.axes.rank == 0 ||
        (options.axes.rank == 1 && require_axis(Reduce::name, options.axes[0], rank) == rank - 1);
    if (!only_last) {
      refuse(fmt::format("axes are {} with offsets; accepted: {}, the last axis",
                         to_string(options.axes), rank - 1));
    }
    return last;
  }
  if (options.axes.rank == 0) return (AxisSet{1} << rank) - 1;
  for (int i = 0; i < options.axes.rank; ++i) {
    const AxisSet bit = AxisSet{1} << require_axis(Reduce::name, options.axes[i], rank);
    if ((set & bit) != 0) {
      refuse(fmt::format("axes name axis {} twice; accepted: each at most once", options.axes[i]));
    }
    set |= bit;
  }
  return set;
}

/// y without the reduced axes, whichever way it was given.
TensorRef without_reduced(const ConstTensorRef& x, const TensorRef& y, AxisSet reduced,
                          const ReduceOptions& options) {
  const bool segments = options.offsets.data != nullptr;
  Extents wanted;   // the kept axes
  Extents keeping;  // with extents of 1 for those reduced
  keeping.rank = x.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool gone = (reduced >> axis & 1) != 0;
    keeping[axis] = gone ? 1 : x.shape[axis];
    if (!gone) wanted[wanted.rank++] = x.shape[axis];
  }
  if (segments) {
    const std::int64_t count = options.offsets.shape[0] - 1;
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

Reduce::Args Reduce::bind(const ConstTensorRef& x, const TensorRef& y,
                          const ReduceOptions& options) {
  require_tensor(name, x, "x");
  require_tensor(name, y, "y");
  require_choice(name, options.operation, Reduction::norm, "operation");
  require_list(name, options.axes, "axes");
  Args args;
  args.x = x;
  args.operation = options.operation;
  if (is_given(options.offsets)) {
    require_tensor(name, options.offsets, "offsets");
    if (options.offsets.rank() != 1 || options.offsets.shape[0] < 1) {
      refuse(fmt::format("offsets are {}; accepted: n + 1 numbers for n segments",
                         to_string(options.offsets.shape)));
    }
    args.offsets = options.offsets;
  }
  args.reduced = reduced_axes(x, options);
  args.y = without_reduced(x, y, args.reduced, options);
  require_writable(name, y, "y");
  // y's strides, one an axis of x; those of reduced axes are never looked at.
  Extents y_strides = x.shape;
  for (int axis = 0, from = 0; axis < x.rank(); ++axis) {
    const bool gone = (args.reduced >> axis & 1) != 0;
    y_strides[axis] = gone ? 0 : args.y.strides[from++];
  }
  args.kept = collapse<2>(x.shape, {x.strides, y_strides}, ~args.reduced, AxisOrder::by_stride);
  // An index counts in the order of the axes as they are.
  args.terms = collapse<1>(x.shape, {x.strides}, args.reduced,
                           args.is_arg() ? AxisOrder::logical : AxisOrder::by_stride);
  return args;
}

void Reduce::validate(const Args& args, const Context& context) {
  check_types(args);
  require_here(name, args.x, "x", context);
  require_here(name, args.y, "y", context);
  if (args.has_segments()) {
    require_dtype(name, args.offsets, "offsets", {DType::i32, DType::i64});
    require_here(name, args.offsets, "offsets", context);
  }
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

void Reduce::check_aliasing(const Args& args) {
  require_apart(name, args.y, "y", args.x, "x");
  if (args.has_segments()) require_apart(name, args.y, "y", args.offsets, "offsets");
}

Reduce::Given Reduce::given(const Args& args) {
  Given given{args.x, args.y, {}};
  given.options.operation = args.operation;
  given.options.offsets = args.offsets;
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    if ((args.reduced >> axis & 1) == 0) continue;
    given.options.axes[given.options.axes.rank++] = axis;
  }
  return given;
}

void Reduce::call(Context& context, const Given& given) {
  reduce(context, given.x, given.y, given.options);
}

void reduce(Context& context, const ConstTensorRef& x, const TensorRef& y,
            const ReduceOptions& options, Pick pick) {
  call<Reduce>(context, pick, x, y, options);
}

}  // namespace rung
