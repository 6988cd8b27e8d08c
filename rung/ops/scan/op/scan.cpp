// SPDX-License-Identifier: Apache-2.0
// scan: the operator's object, its rung list, and what every call goes through.
#include "rung/ops/scan/scan.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rung/core/any_operator.hpp"
#include "rung/core/require.hpp"

namespace rung {
namespace {

// Initialised before any dynamic initialiser runs, so rungs of any file may push themselves.
constinit RungList<Scan> rung_list;
const Operator<Scan> self;

/// From a tensor's first element to the one where a reversed scan begins, in bytes.
template <class Void>
std::int64_t last_element(const BasicTensorRef<Void>& tensor, std::int64_t length,
                          std::int64_t stride) {
  std::int64_t bytes = 0;
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  if (stride == INT64_MIN || __builtin_mul_overflow(length - 1, stride, &bytes) ||
      __builtin_mul_overflow(bytes, size, &bytes)) {
    reject("scan", fmt::format("shape {} with strides {} leaves the address space",
                               to_string(tensor.shape), to_string(tensor.strides)));
  }
  return bytes;
}

template <class Void>
Void* moved(Void* data, std::int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
  return data == nullptr ? nullptr : static_cast<Byte*>(data) + bytes;
}

/// With the axis at the end, and turned round if the scan is.
template <class Void>
BasicTensorRef<Void> along(const BasicTensorRef<Void>& tensor, int axis, bool reverse) {
  BasicTensorRef<Void> result = tensor;
  const int last = tensor.rank() - 1;
  for (int to = axis; to < last; ++to) {
    result.shape[to] = tensor.shape[to + 1];
    result.strides[to] = tensor.strides[to + 1];
  }
  const std::int64_t length = tensor.shape[axis];
  const std::int64_t stride = tensor.strides[axis];
  result.shape[last] = length;
  result.strides[last] = stride;
  if (reverse && length > 1) {
    result.data = moved(tensor.data, last_element(tensor, length, stride));
    result.strides[last] = -stride;
  }
  return result;
}

/// The inverse of along().
template <class Void>
BasicTensorRef<Void> as_given(const BasicTensorRef<Void>& tensor, int axis, bool reverse) {
  BasicTensorRef<Void> result = tensor;
  const int last = tensor.rank() - 1;
  for (int to = last; to > axis; --to) {
    result.shape[to] = tensor.shape[to - 1];
    result.strides[to] = tensor.strides[to - 1];
  }
  const std::int64_t length = tensor.shape[last];
  const std::int64_t stride = tensor.strides[last];
  result.shape[axis] = length;
  result.strides[axis] = stride;
  if (reverse && length > 1) {
    result.data = moved(tensor.data, last_element(tensor, length, stride));
    result.strides[axis] = -stride;
  }
  return result;
}

}  // namespace

RungList<Scan>& Scan::rungs() { return rung_list; }

Scan::Args Scan::bind(const ConstTensorRef& x, const TensorRef& y, const ScanOptions& options) {
  require_tensor(name, x, "x");
  require_tensor(name, y, "y");
  require_choice(name, options.operation, ScanOperation::max, "operation");
  if (x.rank() == 0) reject(name, "x is a scalar; accepted: 1 to 8 axes");
  require_shape(name, y, "y", x.shape);
  require_writable(name, y, "y");
  Args args;
  args.axis = require_axis(name, options.axis, x.rank());
  args.operation = options.operation;
  args.exclusive = options.exclusive;
  args.reverse = options.reverse;
  args.x = along(x, args.axis, args.reverse);
  args.y = along(y, args.axis, args.reverse);
  if (is_given(options.offsets)) {
    require_tensor(name, options.offsets, "offsets");
    if (options.offsets.rank() != 1) {
      reject(name, fmt::format("offsets has {} axes ({}); accepted: 1, a position an element",
                               options.offsets.rank(), to_string(options.offsets.shape)));
    }
    args.offsets = options.offsets;
  }
  const AxisSet others = (AxisSet{1} << (x.rank() - 1)) - 1;
  args.lines = collapse<2>(args.y.shape, {args.x.strides, args.y.strides}, others);
  return args;
}

void Scan::validate(const Args& args, const Context& context) {
  const auto accepted = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                         DType::u8,  DType::u16, DType::i32, DType::i64};
  require_dtype(name, args.x, "x", accepted);
  require_dtype(name, args.y, "y", {args.x.dtype});
  require_here(name, args.x, "x", context);
  require_here(name, args.y, "y", context);
  if (args.has_segments()) {
    require_dtype(name, args.offsets, "offsets", {DType::i32, DType::i64});
    require_here(name, args.offsets, "offsets", context);
  }
}

void Scan::check_aliasing(const Args& args) {
  if (!same_place(args.x, args.y)) require_apart(name, args.y, "y", args.x, "x");
  if (args.has_segments()) require_apart(name, args.y, "y", args.offsets, "offsets");
}

bool Scan::rebase(Args& args, const ConstTensorRef& x, const TensorRef& y,
                  const ScanOptions& options) {
  const void* const x_before = args.x.data;
  const void* const y_before = args.y.data;
  const void* const offsets_before = args.offsets.data;
  args.x.data = x.data;
  args.y.data = y.data;
  args.offsets.data = options.offsets.data;
  if (args.reverse && args.length() > 1) {
    args.x.data = moved(x.data, -last_element(args.x, args.length(), args.x_stride()));
    args.y.data = moved(y.data, -last_element(args.y, args.length(), args.y_stride()));
  }
  return args.x.data != x_before || args.y.data != y_before || args.offsets.data != offsets_before;
}

Scan::Given Scan::given(const Args& args) {
  Given given{
      as_given(args.x, args.axis, args.reverse), as_given(args.y, args.axis, args.reverse), {}};
  given.options = {.operation = args.operation,
                   .axis = args.axis,
                   .exclusive = args.exclusive,
                   .reverse = args.reverse,
                   .offsets = args.offsets};
  return given;
}

void Scan::call(Context& context, const Given& given) {
  scan(context, given.x, given.y, given.options);
}

void scan(Context& context, const ConstTensorRef& x, const TensorRef& y, const ScanOptions& options,
          Pick pick) {
  call<Scan>(context, pick, x, y, options);
}

}  // namespace rung
