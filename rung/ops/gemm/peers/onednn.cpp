// SPDX-License-Identifier: Apache-2.0
// gemm / onednn: the peer oneDNN, dnnl_sgemm or its matmul primitive, whichever is faster.
//
// Kernels  generated at run time for the detected processor; DNNL_MAX_CPU_ISA is overridden.
// Choice   the matmul primitive is faster with few columns (293 against 195 Gflop/s at 4096x16x4096
// on two Zen 5 cores) and for small problems (37 against 31 at 16^3); dnnl_sgemm is faster with few
// rows and for vectors (237 against 132 at 16x4096x4096) and no slower for large squares. bf16 has
// only the primitive.
// Limits   f32 and bf16; bf16 with alpha = 1 and beta = 0. oneDNN's primitives could fuse a bias
//          and an activation; the peer leaves them out, to compute the same as the other libraries.
#include "rung/ops/gemm/peers/call.hpp"
#include "rung/peers/onednn.hpp"

namespace rung {
namespace {

/// Returns the thread's primitive, which repeated calls reuse.
onednn::Primitive& cached() {
  thread_local onednn::Primitive primitive;
  return primitive;
}

/// Returns a matrix as a oneDNN tensor, with the transposition in its strides.
ConstTensorRef tensor(const peer::Matrix& matrix, DType dtype, std::int64_t rows,
                      std::int64_t columns) {
  const Extents strides =
      matrix.transposed ? Extents{1, matrix.leading} : Extents{matrix.leading, 1};
  return {matrix.data, dtype, Extents{rows, columns}, strides};
}

bool prepare(const peer::BlasArguments& call, const Gemm::Args& args, int threads) {
  return cached().prepare({.kind = onednn::Kind::matmul},
                          {{onednn::source, tensor(call.a, args.a.dtype, call.m, call.k)},
                           {onednn::weights, tensor(call.b, args.a.dtype, call.k, call.n)},
                           {onednn::destination, tensor(call.c, args.c.dtype, call.m, call.n)}},
                          threads);
}

bool plain(const Gemm::Args& args) { return args.alpha == 1 && args.beta == 0; }

bool prefers_matmul(const peer::BlasArguments& call) {
  return std::max({call.m, call.n, call.k}) <= 512 || (call.n > 1 && call.n <= 32 && call.m > 32);
}

Support supports(const Gemm::Args& args, const Context& context) {
  const bool f32 = args.a.dtype == DType::f32 && args.c.dtype == DType::f32;
  const bool bf16 =
      args.a.dtype == DType::bf16 && (args.c.dtype == DType::bf16 || args.c.dtype == DType::f32);
  if (!f32 && !bf16) return unsupported("oneDNN multiplies f32 and bf16 on a CPU");
  const Support call = peer::supports_call(args, std::numeric_limits<std::int64_t>::max());
  if (!call || f32 || args.batch() == 0 || args.m() == 0 || args.n() == 0) return call;
  if (!plain(args)) return unsupported("with bf16: alpha = 1 and beta = 0 only");
  if (!prepare(peer::call_of(args), args, context.threads())) {
    return unsupported("no bf16 matmul for this processor");
  }
  return supported;
}

void check(bool ok) {
  if (!ok) throw Error(ErrorCode::internal, "oneDNN reported a failure");
}

void run(const Gemm::Args& args, Context& context) {
  const peer::ThreadCount threads(context.threads());
  peer::for_each_matrix(args, [&](const peer::BlasArguments& call) {
    const bool f32 = args.a.dtype == DType::f32;
    if (!f32 || (plain(args) && prefers_matmul(call))) {
      if (prepare(call, args, context.threads())) {
        cached().run({call.a.data, call.b.data, call.c.data});
        return;
      }
      check(f32);
    }
    check(onednn::sgemm(call.a.transposed, call.b.transposed, call.m, call.n, call.k,
                        static_cast<float>(args.alpha), reinterpret_cast<const float*>(call.a.data),
                        call.a.leading, reinterpret_cast<const float*>(call.b.data), call.b.leading,
                        static_cast<float>(args.beta), reinterpret_cast<float*>(call.c.data),
                        call.c.leading) == 0);
  });
}

const Rung<Gemm> self{{.name = "onednn",
                       .peer = true,
                       .about = onednn::about,
                       .present = onednn::present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
