// SPDX-License-Identifier: Apache-2.0
// Range checks on softmax inputs.
#include "rung/ops/softmax/shared/value_range.hpp"

#include <cmath>
#include <cstdint>

#include "rung/core/tensor.hpp"

namespace rung::softmax_values {
namespace {

constexpr std::int64_t max_elements = std::int64_t{1} << 26;

/// Bound on |scale x| within which exponentials and their sums stay normal numbers of f32.
constexpr double largest_exponent = 80.0;

}  // namespace

bool are_below(double limit, double scale, const ConstTensorRef& x, const Context& context) {
  ConstTensorRef values = x;
  Tensor host;
  if (context.backend() == Backend::cuda) {
    host = Tensor(x.dtype, x.shape);
    copy(x, host);
    values = host;
  }
  const Rows<1> rows = rows_along<1>(values.shape, {values.strides}, values.shape.rank - 1);
  if (rows.length == 0) return true;  // no elements, however many rows
  return visit<float, double, f16, bf16>(values.dtype, [&]<class T>() {
    for (std::int64_t row = 0; row < rows.count(); ++row) {
      const T* first = static_cast<const T*>(values.data) + rows.offset(row);
      for (std::int64_t i = 0; i < rows.length; ++i) {
        const auto value = static_cast<Accumulator<T>>(first[i * rows.steps[0]]);
        if (!(std::abs(scale * static_cast<double>(value)) < limit)) return false;
      }
    }
    return true;
  });
}

Support supports_naive(const Softmax::Args& args, const Context& context) {
  if (args.log) return unsupported("without the logarithm");
  if (args.x.dtype != DType::f32 || args.y.dtype != DType::f32) return unsupported("f32 only");
  if (args.length() * args.count() > max_elements) {
    return unsupported("looks through x first: at most 2^26 elements");
  }
  if (!are_below(largest_exponent, args, context)) {
    return unsupported("an exponential of these values would overflow or vanish");
  }
  return supported;
}

}  // namespace rung::softmax_values
