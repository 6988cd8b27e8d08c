// SPDX-License-Identifier: Apache-2.0
// gemm: the problems for checks and timings, how they are built, and the command line.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_words.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {
namespace {

Activation parse_activation(std::string_view text) {
  for (const auto& [name, activation] : activation_names) {
    if (name == text) return activation;
  }
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("gemm: activation '{}'; accepted: none, relu, gelu, sigmoid, tanh", text));
}

Precision parse_precision(std::string_view text) {
  if (text == "full") return Precision::full;
  if (text == "tf32") return Precision::tf32;
  if (text == "split") return Precision::split;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("gemm: precision '{}'; accepted: full, tf32, split", text));
}

/// Returns C's default type: 8-bit operands have results of more bits.
DType default_result(DType operands) {
  if (operands == DType::i8) return DType::i32;
  return size_of(operands) == 1 ? DType::bf16 : operands;
}

// Square and rectangular shapes; few rows, columns or terms; long sums; batches of small products;
// epilogues.
constexpr std::string_view survey_patterns[] = {
    "(f32*3|bf16|f16|f64) 1..4096x1..4096x1..4096(|,ta|,tb|,ta,tb)",
    "(f32*3|bf16|f16|f64) 1..16x1..16384x1..16384(|,ta|,tb)",
    "(f32*3|bf16|f16|f64) 1..16384x1..16x1..16384(|,ta|,tb)",
    "(f32*3|bf16|f16|f64) 1..8192x1..8192x1..16(|,ta|,tb)",
    "(f32*3|bf16|f16|f64) 1..256x1..256x256..262144(|,ta|,tb)",
    "(f32*3|bf16|f16|f64) 1..128x1..128x1..128(|,ta|,tb),batch=2..16384",
    ("(f32*2|bf16|f16) "
     "1..4096x1..4096x1..2048(|,ta|,tb)(,bias|,bias_rows|,beta=1|,alpha=0.5,beta=2)(|,relu|,gelu|,"
     "sigmoid|,tanh)"),
    ("(f32 1..4096x1..4096x1..4096(,tf32|,split)|(bf16|f16) "
     "1..4096x1..4096x1..4096,out=f32)(|,ta|,tb)"),
    "(e4m3|e5m2|i8) 1..4096x1..4096x1..4096(|,ta|,tb)(|,residual)",
    "e4m3 1..4096x1..4096x1..4096,tb(|,scaled)(|,b=e5m2)(|,out=f32|,out=f16)",
    // Decoding: few tokens times a layer's weights. Then prompts, and large products.
    "(bf16*3|f16|f32) 1..64x64..32768x64..16384(|,tb*3)",
    "(bf16*3|f16|f32*2|f64) 64..8192x64..16384x64..8192(|,ta|,tb)",
    "(f32 64..8192x64..8192x64..8192,(tf32|split)|e4m3 64..8192x64..16384x64..8192,tb)",
};
const Survey<Gemm> survey{survey_patterns};

}  // namespace

std::vector<Problem> Gemm::check_problems(Backend backend) {
  // Degenerate shapes and shapes around the edges of every tile size, each option alone and
  // combined, every type. Small enough for the simulated GPU.
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x4x3",
      "f32 4x0x3",
      "f32 5x6x0,beta=2,bias",
      "f32 3x4x5,batch=0",
      "f32 1x1x1",
      "f32 2x3x4",
      "f32 7x5x3,ta",
      "f32 8x8x8",
      "f32 16x16x16",
      "f32 17x33x9,tb",
      "f32 31x32x33",
      "f32 64x64x64",
      "f32 65x63x40,ta,tb",
      "f32 100x1x50",
      "f32 1x100x50",
      "f32 1x1x300",
      "f32 3x70x2",
      "f32 33x70x129",
      "f32 16x16x16,alpha=0,beta=1.5",
      "f32 20x24x28,alpha=2.5",
      "f32 17x5x64,alpha=.3,beta=.7",
      "f32 40x36x20,alpha=-1,beta=0.5",
      "f32 33x17x65,ta,beta=1,bias,relu",
      "f32 18x22x30,bias,gelu",
      "f32 12x40x16,bias_rows,sigmoid",
      "f32 25x31x14,tb,tanh",
      "f32 9x10x11,batch=5",
      "f32 24x20x16,batch=3,ta,tb,alpha=0.5,beta=2,bias,gelu",
      "f32 64x64x64,tf32",
      "f32 37x50x41,tf32,ta,beta=1,bias",
      "f64 1x1x1",
      "f64 16x16x16",
      "f64 33x47x29,ta",
      "f64 30x20x70,tb,beta=1,bias,tanh",
      "bf16 16x16x16",
      "bf16 33x29x47,tb",
      "bf16 40x24x64,out=f32,beta=1",
      "bf16 20x30x17,bias,relu",
      "f16 16x16x16",
      "f16 29x33x47,ta",
      "f16 24x40x64,out=f32,bias_rows",
      "f16 18x18x18,batch=2,gelu",
      // Shapes that TMA supports: rows of a multiple of 16 bytes.
      "bf16 8x8x8",
      "bf16 64x32x24,ta",
      "f16 40x48x72,tb",
      "bf16 136x24x16,ta,tb",
      "f16 24x264x16,bias,gelu",
      "bf16 32x64x200,out=f32,beta=1,bias_rows,relu",
      "f16 16x24x80,batch=3,ta,alpha=0.5",
      "bf16 48x40x64,batch=2,tb,sigmoid",
      "bf16 16x24x2112",
      "f32 40x48x64,tf32,tb",
      "f32 16x264x36,tf32,tb,bias,tanh",
      // Short k; few rows.
      "f32 70x150x1",
      "bf16 65x130x16,ta,out=f32,beta=1",
      "f64 66x70x7,tb,bias,relu",
      "f32 16x132x140,tb",
      "f32 1x3x2001",
      "f32 3x2x2001,ta",
      // Sums long enough for blocks to share; f64, which few rungs that pad k to a tile support.
      "f64 1x2x9001,tb,beta=1",
      "f64 3x2x9001,ta",
      "f64 70x66x150,tb",
      "f64 513x1025x17",  // on many SMs, tiles of 64 columns
      "f16 9x65x61,batch=6",
      "bf16 70x3x600,ta",
      "f32 64x64x64,split",
      "f32 37x50x141,split,ta,beta=1,bias",
      "f32 20x136x70,split,tb,batch=2,gelu",
      // Residual; 8-bit floats with block scales; integers.
      "f32 33x21x40,residual",
      "f32 65x64x36,tb,beta=1,bias,relu,residual",
      "f64 20x30x10,residual,tanh",
      "bf16 64x48x80,residual,out=f32",
      "f16 24x40x64,bias,gelu,residual",
      "e4m3 1x1x1",
      "e4m3 16x16x32,tb",
      "e4m3 33x29x47",
      "e5m2 40x24x64,ta,out=f32,beta=1",
      "e4m3 64x80x272,tb,b=e5m2,out=f16,bias,gelu",
      "e5m2 20x30x17,ta,tb,b=e4m3,relu,residual",
      "e4m3 5x6x0,beta=2,bias",
      "e4m3 24x20x160,batch=3,tb,alpha=0.5,bias_rows",
      "e4m3 130x140x300,tb,scaled",
      "e4m3 140x130x256,scaled,b=e5m2,out=f32,beta=1,batch=2",
      "e5m2 70x200x129,ta,scaled,alpha=2,bias,relu",
      "i8 1x1x1",
      "i8 16x16x32,tb",
      "i8 5x300x1100,residual",
      "i8 300x1x70,ta,beta=2",
      "i8 33x29x47,ta,beta=-1",
      "i8 70x66x160,tb,alpha=3,bias,relu,residual",
      "i8 24x40x100,batch=2,ta,tb,bias_rows",
      "i8 9x7x0,beta=3",
  });
  if (backend == Backend::simt) return problems;
  if (backend == Backend::cuda) {
    // Tensor cores: tile edges, more tiles than SMs, split-K, every layout.
    const std::vector<Problem> tensor_cores = Problem::parse_all({
        "bf16 128x256x64",
        "bf16 264x520x136",
        "f16 520x264x200,ta",
        "bf16 384x192x1032,tb",
        "f16 256x768x320,ta,tb,out=f32",
        "bf16 1000x3000x72",
        "f16 1024x1024x512,beta=1,bias,gelu",
        "bf16 2048x1536x128,ta,alpha=0.5",
        "f16 128x136x64,batch=200",
        "bf16 64x200x72,batch=300,tb,out=f32",
        "f16 72x64x80,batch=5,ta,tb,beta=2,bias_rows,relu",
        "bf16 64x64x33000",
        "f16 16x2048x1024",
        "bf16 1x4096x1024,tb",
        "bf16 2048x8x2048,ta",
        "f16 3000x24x136,tanh",
        "bf16 8x8x70000",
        "f16 513x1025x257",
        "bf16 700x901x1103,ta,tb",
        "f16 255x511x1021,tb,out=f32,beta=1",
        "bf16 129x3x4099,ta",
        "f32 512x768x256,tf32,tb",
        "f32 300x257x130,tf32",
        "f32 1000x520x264,tf32,ta,beta=1,bias",
        "f32 128x64x4096,tf32,tb",
        "f32 513x255x1023,tf32,ta,tb",
        "f64 300x257x130,tb",
        "f64 1000x520x264,ta,beta=1,bias",
        "f64 64x64x33000,ta,tb",
        "f64 1025x1023x511,gelu",
        // Few rows or columns; split-K; short k; sliced k; split operands.
        "f32 1x4096x4096",
        "f32 16x2050x4100,tb",
        "f32 64x5x65536",
        "f32 1x3x20001",
        "f32 3x2x20001,ta",
        "f16 4x3000x2048,ta",
        "bf16 2047x1x1393",
        "f32 1025x6075x1,tb",
        "f16 1664x803x5,bias,gelu",
        "f32 512x512x512",
        "f32 1000x520x777,ta,tb",
        "f32 1024x512x1024,split,tb",
        "f32 513x255x1023,split,ta",
        "f32 300x700x4096,split,batch=2,bias,gelu",
        "e4m3 512x768x1024,tb",
        "e5m2 384x520x4096,tb,out=f32,beta=1",
        "e4m3 1000x520x264,b=e5m2,bias,gelu",
        "e4m3 513x255x1023,ta,tb,out=f16",
        "e4m3 1024x1536x2048,tb,scaled",
        "e5m2 300x700x900,scaled,out=f32,residual",
        "e4m3 2048x2048x256,ta,batch=2",
        "i8 512x768x1024,tb",
        "i8 513x255x1023,ta,beta=2,bias,relu",
    });
    problems.insert(problems.end(), tensor_cores.begin(), tensor_cores.end());
  }
  // Shapes that cross cache blocks and select the rungs for large, skinny and long problems.
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 100x100x100",
      "f32 128x128x128",
      "f32 129x257x300",
      "f32 200x150x520,ta,tb",
      "f32 150x100x1100,beta=1,bias,relu",
      "f32 15x1100x1030",
      "f32 13x999x601,tb",
      "f32 1000x16x300",
      "f32 999x11x301,ta",
      "f32 1x1500x700",
      "f32 1x1500x700,tb",
      "f32 700x1x1500",
      "f32 700x1x1500,ta",
      "f32 1501x999x5,beta=0.5",
      "f32 2049x2064x5",
      "f32 3x5x20000",
      "f32 48x40x6000,tb",
      "f32 2x2x2,batch=1000",
      "f32 13x65x61,batch=9,tb",
      "f64 21x34x19,batch=7,ta,beta=1",
      "f32 60x70x80,batch=20,bias,gelu",
      "f32 200x150x3,alpha=3,tanh",
      "f32 200x150x3,alpha=5,gelu",
      "f64 200x150x3,alpha=3,tanh",
      "f64 90x80x3,alpha=5,gelu",
      "f32 200x150x2,alpha=9,sigmoid",
      "f64 90x80x2,alpha=9,sigmoid",
      "f64 100x100x100",
      "f64 129x257x300,beta=1",
      "f64 1x700x900",
      "f64 3x301x373,ta",
      "f64 500x600x40,ta",
      "bf16 129x257x300",
      "bf16 16x700x600,tb",
      "f16 200x150x300,beta=1",
      "f32 150x100x300,bias,relu,residual",
      "e4m3 200x150x300,tb,scaled",
      "i8 200x150x300,beta=1",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Gemm::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 1024x1024x1024", "f32 16x16x16", "f32 128x128x128",
                                 "f32 16x4096x4096", "f32 4096x4096x16", "f32 1x4096x4096"});
    case Backend::cuda:
      return Problem::parse_all({"f32 4096x4096x4096", "f32 8192x8192x8192", "f32 1024x1024x1024",
                                 "f32 4096x4096x4096,tf32", "bf16 4096x4096x4096",
                                 "e4m3 4096x4096x4096,tb"});
    case Backend::simt:
      return Problem::parse_all(
          {"f32 64x64x64", "f32 65x63x40", "f32 64x64x64,tf32", "bf16 64x64x64"});
  }
  return {};
}

Gemm::Call Gemm::make(const Problem& problem, Inputs& inputs) {
  problem.expect(name, 3,
                 {"ta", "tb", "batch", "alpha", "beta", "bias", "bias_rows", "relu", "gelu",
                  "sigmoid", "tanh", "out", "tf32", "split", "b", "scaled", "residual"});
  const std::int64_t m = problem.extents[0];
  const std::int64_t n = problem.extents[1];
  const std::int64_t k = problem.extents[2];
  const bool batched = problem.has("batch");
  const std::int64_t batch = problem.integer("batch", 1, Problem::count);
  const DType out =
      problem.has("out") ? parse_dtype(problem.text("out", "")) : default_result(problem.dtype);
  const DType b_type = problem.has("b") ? parse_dtype(problem.text("b", "")) : problem.dtype;
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return batched ? Extents{batch, rows, columns} : Extents{rows, columns};
  };
  Call call;
  call.alpha = problem.number("alpha", 1.0);
  call.beta = problem.number("beta", 0.0);
  call.transpose_a = problem.has("ta");
  call.transpose_b = problem.has("tb");
  expect_one_of(name, problem, std::array<std::string_view, 2>{"tf32", "split"},
                [](std::string_view one) { return one; });
  if (problem.has("tf32")) call.precision = Precision::tf32;
  if (problem.has("split")) call.precision = Precision::split;
  expect_one_of(name, problem, activation_names, [](const auto& one) { return one.first; });
  for (const auto& [text, activation] : activation_names) {
    if (problem.has(text)) call.activation = activation;
  }
  call.a = inputs.input("a", problem.dtype, call.transpose_a ? matrix(k, m) : matrix(m, k));
  call.b = inputs.input("b", b_type, call.transpose_b ? matrix(n, k) : matrix(k, n));
  if (problem.has("bias")) call.bias = inputs.input("bias", out, Extents{n});
  if (problem.has("bias_rows")) call.bias = inputs.input("bias", out, Extents{m, 1});
  if (problem.has("residual")) call.residual = inputs.input("residual", out, matrix(m, n));
  if (problem.has("scaled")) {
    const std::int64_t k_blocks = ceil_div(k, gemm_scale_block);
    call.scale_a = inputs.input("scale_a", DType::f32, matrix(m, k_blocks));
    call.scale_b =
        inputs.input("scale_b", DType::f32, matrix(k_blocks, ceil_div(n, gemm_scale_block)));
  }
  call.c = call.beta != 0 ? inputs.in_out("c", out, matrix(m, n))
                          : inputs.output("c", out, matrix(m, n));
  return call;
}

Problem Gemm::describe(const Call& call) {
  const Extents& a = call.a.shape;
  const Extents& c = call.c.shape;
  const std::int64_t m = c[c.rank - 2];
  const std::int64_t n = c[c.rank - 1];
  const std::int64_t k = a[a.rank - (call.transpose_a ? 2 : 1)];
  constexpr std::int64_t unbatched = -1;
  const Extents& bias = call.bias.shape;
  const bool bias_rows = bias.rank > 1 && bias[bias.rank - 1] == 1;
  return ProblemWriter(call.a.dtype, {m, n, k})
      .flag("ta", call.transpose_a)
      .flag("tb", call.transpose_b)
      .integer("batch", c.rank == 3 ? c[0] : unbatched, unbatched)
      .number("alpha", call.alpha, 1.0)
      .number("beta", call.beta, 0.0)
      .flag("bias", is_given(call.bias) && !bias_rows)
      .flag("bias_rows", is_given(call.bias) && bias_rows)
      .word(activation_names, call.activation, Activation::none)
      .flag("residual", is_given(call.residual))
      .dtype("b", call.b.dtype, call.a.dtype)
      .flag("scaled", is_given(call.scale_a) || is_given(call.scale_b))
      .dtype("out", call.c.dtype, default_result(call.a.dtype))
      .flag("tf32", call.precision == Precision::tf32)
      .flag("split", call.precision == Precision::split)
      .problem();
}

std::span<const ArgumentSpec> Gemm::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 14> specs{{
      {"a", Kind::tensor, true, "op(A): m x k, or batch x m x k"},
      {"b", Kind::tensor, true, "op(B): k x n, or batch x k x n"},
      {"c", Kind::tensor, false, "the C that beta multiplies"},
      {"bias", Kind::tensor, false, "n (a value a column), m x 1 (a value a row) or m x n"},
      {"residual", Kind::tensor, false, "added last; shapes as of bias"},
      {"scale-a", Kind::tensor, false, "factors of e4m3 and e5m2 blocks: m x ceil(k / 128)"},
      {"scale-b", Kind::tensor, false,
       "factors of e4m3 and e5m2 blocks: ceil(k / 128) x ceil(n / 128)"},
      {"alpha", Kind::number, false, "factor of op(A) op(B); default 1"},
      {"beta", Kind::number, false, "factor of --c; default 0, or 1 when --c is given"},
      {"transpose-a", Kind::flag, false, "a holds A transposed: k x m"},
      {"transpose-b", Kind::flag, false, "b holds B transposed: n x k"},
      {"activation", Kind::text, false, "applied last", "none|relu|gelu|sigmoid|tanh"},
      {"precision", Kind::text, false, "tf32 and split let f32 run on tensor cores",
       "full|tf32|split"},
      {"out", Kind::text, false,
       "C's type for 16-bit operands, default theirs, and for 8-bit floats, default bf16",
       "f32|f16|bf16"},
  }};
  return specs;
}

void Gemm::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef a = call.tensors.at("a");
  const ConstTensorRef b = call.tensors.at("b");
  const bool has_c = call.has("c");
  GemmOptions options;
  options.alpha = call.number("alpha", 1.0);
  options.beta = call.number("beta", has_c ? 1.0 : 0.0);
  options.transpose_a = call.has("transpose-a");
  options.transpose_b = call.has("transpose-b");
  options.activation = parse_activation(call.text("activation", "none"));
  options.precision = parse_precision(call.text("precision", "full"));
  if (call.has("bias")) options.bias = call.tensors.at("bias");
  if (call.has("residual")) options.residual = call.tensors.at("residual");
  if (call.has("scale-a")) options.scale_a = call.tensors.at("scale-a");
  if (call.has("scale-b")) options.scale_b = call.tensors.at("scale-b");
  if (options.beta != 0 && !has_c) {
    throw Error(ErrorCode::invalid_argument, "gemm: --beta needs the C it multiplies: --c FILE");
  }
  for (const ConstTensorRef& operand : {a, b}) {
    if (operand.rank() != 2 && operand.rank() != 3) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("gemm: an operand has {} ({}); accepted: 2 or 3",
                              axis_count(operand.rank()), to_string(operand.shape)));
    }
  }
  const int rows = options.transpose_a ? 1 : 2;
  const int columns = options.transpose_b ? 2 : 1;
  const std::int64_t m = a.shape[a.rank() - rows];
  const std::int64_t n = b.shape[b.rank() - columns];
  const DType type = call.has("out") ? parse_dtype(call.text("out", "")) : default_result(a.dtype);
  Extents shape{m, n};
  if (a.rank() == 3 || b.rank() == 3) {
    const std::int64_t a_batch = a.rank() == 3 ? a.shape[0] : 1;
    shape = Extents{a_batch == 1 && b.rank() == 3 ? b.shape[0] : a_batch, m, n};
  }
  call.result = Tensor(type, shape, context.device());
  if (has_c) copy(call.tensors.at("c"), call.result);
  gemm(context, a, b, call.result, options, pick);
}

}  // namespace rung
