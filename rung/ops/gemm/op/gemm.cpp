// SPDX-License-Identifier: Apache-2.0
// gemm: the operator object, its rung list, and the checks that every call passes.
#include "rung/ops/gemm/op/gemm.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Gemm> rung_list;
const Operator<Gemm> self;

[[noreturn]] void reject(const std::string& message) { rung::reject(Gemm::name, message); }

/// Returns a matrix, or a batch of matrices, as a tensor of three axes; a missing batch axis has
/// extent 1.
template <class Void>
BasicTensorRef<Void> with_batch(const BasicTensorRef<Void>& tensor, const char* name,
                                bool transpose) {
  const int rank = tensor.rank();
  if (rank != 2 && rank != 3) {
    reject(fmt::format("{} has {} ({}); accepted: 2 (a matrix) or 3 (a batch first)", name,
                       axis_count(rank), to_string(tensor.shape)));
  }
  BasicTensorRef<Void> result;
  result.data = tensor.data;
  result.dtype = tensor.dtype;
  result.device = tensor.device;
  result.shape.rank = result.strides.rank = 3;
  const int first = rank - 2;
  result.shape[0] = first == 1 ? tensor.shape[0] : 1;
  result.strides[0] = first == 1 ? tensor.strides[0] : 0;
  const int rows = transpose ? first + 1 : first;
  const int columns = transpose ? first : first + 1;
  result.shape[1] = tensor.shape[rows];
  result.strides[1] = tensor.strides[rows];
  result.shape[2] = tensor.shape[columns];
  result.strides[2] = tensor.strides[columns];
  return result;
}

/// Shape of a matrix, or of a batch of matrices, as passed by the caller.
struct Given {
  const char* name;
  const Extents& shape;
  bool transposed = false;

  /// Returns an extent of op(): axis 0 is its rows, axis 1 its columns.
  [[nodiscard]] std::int64_t extent(int axis) const {
    return shape[shape.rank - 2 + (transposed ? 1 - axis : axis)];
  }
  [[nodiscard]] std::string axis_name(int axis) const {
    return fmt::format("{}'s {}", name, (axis == 0) != transposed ? "rows" : "columns");
  }
};

/// Returns "; did you mean transpose_b?" if other transpose flags would make a and b fit c; else
/// "".
std::string other_transposes(const Given& a, const Given& b, const Given& c) {
  for (const int flipped : {2, 1, 3}) {  // bit 0: a, bit 1: b
    const bool flip_a = (flipped & 1) != 0;
    const bool flip_b = (flipped & 2) != 0;
    const Given other_a{a.name, a.shape, a.transposed != flip_a};
    const Given other_b{b.name, b.shape, b.transposed != flip_b};
    if (other_a.extent(1) != other_b.extent(0) || other_a.extent(0) != c.extent(0) ||
        other_b.extent(1) != c.extent(1)) {
      continue;
    }
    std::string options;
    if (flip_a) options += a.transposed ? "no transpose_a" : "transpose_a";
    if (flip_a && flip_b) options += " and ";
    if (flip_b) options += b.transposed ? "no transpose_b" : "transpose_b";
    return "; did you mean " + options + "?";
  }
  return "";
}

/// Throws unless the two operands that share an extent (m, n or k) agree on it.
void require_equal_extents(const Given& a, const Given& b, const Given& c) {
  const auto require_equal = [&](const char* extent, const Given& one, int one_axis,
                                 const Given& other, int other_axis) {
    const std::int64_t first = one.extent(one_axis);
    const std::int64_t second = other.extent(other_axis);
    if (first == second) return;
    reject(fmt::format("{} is {}, {} is {}: the {} = {} ({}) and {} ({}) differ{}", one.name,
                       to_string(one.shape), other.name, to_string(other.shape), extent, first,
                       one.axis_name(one_axis), second, other.axis_name(other_axis),
                       other_transposes(a, b, c)));
  };
  require_equal("inner extents k", a, 1, b, 0);
  require_equal("extents m", a, 0, c, 0);
  require_equal("extents n", b, 1, c, 1);
}

/// Gives an operand of one matrix a batch stride of 0, so that the whole batch shares it.
void share(ConstTensorRef& operand, const Given& given, const Given& c, std::int64_t batch) {
  if (operand.shape[0] == batch) return;
  if (operand.shape[0] != 1) {
    reject(fmt::format("{} is {}, c is {}: the batches of {} and {} differ; accepted for {}: {}",
                       given.name, to_string(given.shape), to_string(c.shape), operand.shape[0],
                       batch, given.name, batch == 1 ? "1" : fmt::format("{} or 1", batch)));
  }
  operand.shape[0] = batch;
  operand.strides[0] = 0;
}

/// Broadcasts bias (or residual) over C by NumPy's rules: axes are matched from the last one
/// backward.
ConstTensorRef spread(const char* name, const ConstTensorRef& bias, const TensorRef& c) {
  ConstTensorRef result = bias;
  result.shape = c.shape;
  result.strides = Extents{0, 0, 0};
  const int rank = bias.rank();
  bool fits = rank >= 1 && rank <= 3;
  for (int axis = 0; fits && axis < rank; ++axis) {
    const int target = axis + 3 - rank;
    if (bias.shape[axis] == c.shape[target]) {
      result.strides[target] = bias.strides[axis];
    } else {
      fits = bias.shape[axis] == 1;
    }
  }
  if (!fits) {
    reject(fmt::format("{} is {}; accepted: {} (per column), {}x1 (per row), {}x{}", name,
                       to_string(bias.shape), c.shape[2], c.shape[1], c.shape[1], c.shape[2]));
  }
  return result;
}

/// Returns scale factors of blocks as a tensor of three axes; one matrix of them may serve the
/// whole batch.
ConstTensorRef block_scales(const char* name, const ConstTensorRef& scale, std::int64_t batch,
                            std::int64_t rows, std::int64_t columns) {
  if (scale.dtype != DType::f32) {
    reject(fmt::format("{} is {}; accepted: f32", name, to_string(scale.dtype)));
  }
  ConstTensorRef result = with_batch(scale, name, false);
  if (result.shape[1] != rows || result.shape[2] != columns ||
      (result.shape[0] != 1 && result.shape[0] != batch)) {
    reject(fmt::format("{} is {}; accepted: {}x{}, or {}x{}x{}", name, to_string(scale.shape), rows,
                       columns, batch, rows, columns));
  }
  if (result.shape[0] != batch) result.strides[0] = 0;
  result.shape[0] = batch;
  return result;
}

bool is_small_float(DType dtype) { return dtype == DType::e4m3 || dtype == DType::e5m2; }

bool accepted_types(DType a, DType b, DType c) {
  if (is_small_float(a) && is_small_float(b)) {
    return c == DType::f32 || c == DType::f16 || c == DType::bf16;
  }
  if (a != b) return false;
  switch (a) {
    case DType::f32:
    case DType::f64:
      return c == a;
    case DType::bf16:
    case DType::f16:
      return c == a || c == DType::f32;
    case DType::i8:
      return c == DType::i32;
    default:
      return false;
  }
}

/// Throws unless alpha and beta are whole numbers and the activation is none or relu, for integer
/// operands.
void check_integers(const Gemm::Args& args) {
  const auto require_whole = [](const char* name, double factor) {
    if (std::floor(factor) == factor && std::abs(factor) <= 0x7fffffff) return;
    reject(
        fmt::format("{} is {} with i8 operands; accepted: whole numbers of 32 bits", name, factor));
  };
  require_whole("alpha", args.alpha);
  require_whole("beta", args.beta);
  if (args.activation != Activation::none && args.activation != Activation::relu) {
    reject("an activation other than relu with i8 operands; accepted: none, relu");
  }
}

void check_types(const Gemm::Args& args) {
  const DType a = args.a.dtype;
  const DType c = args.c.dtype;
  if (!accepted_types(a, args.b.dtype, c)) {
    reject(fmt::format(
        "a is {}, b is {}, c is {}; accepted: all f32, all f64, bf16 or f16 for a and b with "
        "the same or f32 for c, e4m3 or e5m2 for each of a and b with f32, f16 or bf16 for c, or "
        "i8 for a and b with i32 for c",
        to_string(a), to_string(args.b.dtype), to_string(c)));
  }
  for (const auto& [name, tensor] :
       {std::pair<const char*, const ConstTensorRef&>{"bias", args.bias},
        {"residual", args.residual}}) {
    if (tensor.data != nullptr && tensor.dtype != c) {
      reject(
          fmt::format("{} is {}; accepted: {}, as c", name, to_string(tensor.dtype), to_string(c)));
    }
  }
  if (args.precision != Precision::full && a != DType::f32) {
    reject(fmt::format("precision {} with {} operands; accepted: f32",
                       args.precision == Precision::tf32 ? "tf32" : "split", to_string(a)));
  }
  if (a == DType::i8) check_integers(args);
  if ((is_given(args.scale_a) || is_given(args.scale_b)) && !is_small_float(a)) {
    reject(fmt::format("scale_{} with {} operands; accepted: e4m3 and e5m2",
                       is_given(args.scale_a) ? "a" : "b", to_string(a)));
  }
}

}  // namespace

RungList<Gemm>& Gemm::rungs() { return rung_list; }

void Gemm::bind(Args& args) {
  require_choice(name, args.activation, Activation::tanh, "activation");
  require_choice(name, args.precision, Precision::split, "precision");
  const Extents a_shape = args.a.shape;
  const Extents b_shape = args.b.shape;
  const Extents c_shape = args.c.shape;
  args.a = with_batch(args.a, "a", args.transpose_a);
  args.b = with_batch(args.b, "b", args.transpose_b);
  args.c = with_batch(args.c, "c", false);
  const Given a{"a", a_shape, args.transpose_a};
  const Given b{"b", b_shape, args.transpose_b};
  const Given c{"c", c_shape};
  require_equal_extents(a, b, c);
  share(args.a, a, c, args.batch());
  share(args.b, b, c, args.batch());
  if (is_given(args.bias)) args.bias = spread("bias", args.bias, args.c);
  if (is_given(args.residual)) args.residual = spread("residual", args.residual, args.c);
  check_types(args);
  const std::int64_t k_blocks = ceil_div(args.k(), gemm_scale_block);
  if (is_given(args.scale_a)) {
    args.scale_a = block_scales("scale_a", args.scale_a, args.batch(), args.m(), k_blocks);
  }
  if (is_given(args.scale_b)) {
    args.scale_b = block_scales("scale_b", args.scale_b, args.batch(), k_blocks,
                                ceil_div(args.n(), gemm_scale_block));
  }
}

void gemm(Context& context, const ConstTensorRef& a, const ConstTensorRef& b, const TensorRef& c,
          const GemmOptions& options, Pick pick) {
  call<Gemm>(context, pick, [&]<class Call>() {
    return Call{.a = a,
                .b = b,
                .c = c,
                .bias = options.bias,
                .residual = options.residual,
                .scale_a = options.scale_a,
                .scale_b = options.scale_b,
                .alpha = options.alpha,
                .beta = options.beta,
                .transpose_a = options.transpose_a,
                .transpose_b = options.transpose_b,
                .activation = options.activation,
                .precision = options.precision};
  });
}

}  // namespace rung
