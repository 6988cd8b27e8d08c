// SPDX-License-Identifier: Apache-2.0
// scan: operator object, list of rungs, and validation of arguments.
#include "rung/ops/scan/op/scan.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Scan> rung_list;
const Operator<Scan> self;

/// Returns the offset in bytes from a tensor's first element to the element where a reversed scan
/// begins.
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

/// Returns the tensor with the scan axis last, reversed if the scan is.
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

}  // namespace

RungList<Scan>& Scan::rungs() { return rung_list; }

void Scan::bind(Args& args) {
  require_choice(name, args.operation, ScanOperation::max, "operation");
  if (args.x.rank() == 0) reject(name, "x is a scalar; accepted: 1 to 8 axes");
  require_shape(name, args.y, "y", args.x.shape);
  require_dtype(name, args.x, "x",
                {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::u16,
                 DType::i32, DType::i64});
  require_dtype(name, args.y, "y", {args.x.dtype});
  if (is_given(args.offsets)) {
    require_dtype(name, args.offsets, "offsets", {DType::i32, DType::i64});
    if (args.offsets.rank() != 1) {
      reject(name, fmt::format("offsets has {} ({}); accepted: 1, a position an element",
                               axis_count(args.offsets.rank()), to_string(args.offsets.shape)));
    }
  }
  args.axis = require_axis(name, args.axis, args.x.rank());
  args.x = along(args.x, args.axis, args.reverse);
  args.y = along(args.y, args.axis, args.reverse);
  const AxisSet others = (AxisSet{1} << (args.x.rank() - 1)) - 1;
  args.lines = collapse<2>(args.y.shape, {args.x.strides, args.y.strides}, others);
}

void scan(Context& context, const ConstTensorRef& x, const TensorRef& y, const ScanOptions& options,
          Pick pick) {
  call<Scan>(context, pick, [&]<class Call>() {
    return Call{.x = x,
                .y = y,
                .offsets = options.offsets,
                .operation = options.operation,
                .axis = options.axis,
                .exclusive = options.exclusive,
                .reverse = options.reverse};
  });
}

}  // namespace rung
