// SPDX-License-Identifier: Apache-2.0
// gemm / openblas: the peer OpenBLAS, cblas_sgemm and cblas_dgemm.
//
// Kernels  OpenBLAS detects only processors older than itself: 0.3.21 uses Haswell's AVX2 kernels
// on newer AMD machines, at half the speed. It is therefore set to the instruction set that our own
// rungs use, overriding any OPENBLAS_CORETYPE in the environment, for a fair comparison;
// RUNG_PEER_OPENBLAS_CORETYPE selects another.
// Vectors  n = 1 and m = 1 use gemv: 18.6 against 5 Gflop/s through gemm at 4096 (one Zen 5 core).
// Limits   32-bit sizes; no bf16 (distributions build without it); no bias, no activation.
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/peers/call.hpp"

namespace rung {
namespace {

enum Order : int { row_major = 101 };
enum Transpose : int { as_is = 111, transposed = 112 };

template <class T>
using GemmFunction = void(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha,
                          const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);
template <class T>
using GemvFunction = void(int order, int transpose, int rows, int columns, T alpha, const T* a,
                          int lda, const T* x, int x_step, T beta, T* y, int y_step);

const char* core_type() {
  if (const char* requested = std::getenv("RUNG_PEER_OPENBLAS_CORETYPE")) return requested;
  switch (cpu::isa()) {
    case cpu::Isa::avx512:
      return "SkylakeX";
    case cpu::Isa::avx2:
      return "Haswell";
    default:
      return nullptr;  // the library's default
  }
}

struct OpenBlas {
  ScopedEnvironment core{"OPENBLAS_CORETYPE", core_type()};  // read while the library is loaded
  DynamicLibrary library{"RUNG_PEER_OPENBLAS", {"libopenblas.so.0"}};
  GemmFunction<float>* sgemm;
  GemmFunction<double>* dgemm;
  GemvFunction<float>* sgemv;
  GemvFunction<double>* dgemv;
  void (*set_threads)(int);
  const char* (*config)();
  const char* (*corename)();
  int (*parallel)();
  std::atomic<int> threads = 0;

  OpenBlas() {
    library.require(sgemm, "cblas_sgemm");
    library.require(dgemm, "cblas_dgemm");
    library.require(sgemv, "cblas_sgemv");
    library.require(dgemv, "cblas_dgemv");
    library.require(set_threads, "openblas_set_num_threads");
    library.require(config, "openblas_get_config");
    library.require(corename, "openblas_get_corename");
    library.require(parallel, "openblas_get_parallel");
  }
};

OpenBlas& openblas() {
  static OpenBlas loaded;
  return loaded;
}

Support present() { return openblas().library.present(); }

std::string about() {
  const std::string config = openblas().config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::size_t version_end = config.find(' ', config.find(' ') + 1);
  const int parallel = openblas().parallel();
  return config.substr(0, version_end) + ", " + openblas().corename() + ", " +
         (parallel == 2   ? "OpenMP"
          : parallel == 1 ? "own threads"
                          : "one thread");
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.dtype != args.a.dtype || (args.c.dtype != DType::f32 && args.c.dtype != DType::f64)) {
    return unsupported("OpenBLAS multiplies f32 and f64");
  }
  return peer::supports_call(args, peer::int32_limit);
}

template <class T>
void multiply(const Gemm::Args& args, GemmFunction<T>* gemm, GemvFunction<T>* gemv) {
  const T alpha = static_cast<T>(args.alpha);
  const T beta = static_cast<T>(args.beta);
  const auto flag = [](const peer::Matrix& x) { return x.transposed ? transposed : as_is; };
  const auto in = [](const std::byte* data) { return reinterpret_cast<const T*>(data); };
  const auto out = [](std::byte* data) { return reinterpret_cast<T*>(data); };
  const auto narrow = [](std::int64_t size) {
    return static_cast<int>(size);
  };  // supports() has checked it
  peer::for_each_matrix(args, [&](const peer::BlasArguments& call) {
    if (call.m == 1 || call.n == 1) {
      const peer::VectorCall v = peer::vector_call(call);
      // BLAS takes the extents of the matrix as stored.
      gemv(row_major, flag(v.matrix), narrow(v.matrix.transposed ? v.columns : v.rows),
           narrow(v.matrix.transposed ? v.rows : v.columns), alpha, in(v.matrix.data),
           narrow(v.matrix.leading), in(v.x), narrow(v.x_step), beta, out(v.y), narrow(v.y_step));
      return;
    }
    gemm(row_major, flag(call.a), flag(call.b), narrow(call.m), narrow(call.n), narrow(call.k),
         alpha, in(call.a.data), narrow(call.a.leading), in(call.b.data), narrow(call.b.leading),
         beta, out(call.c.data), narrow(call.c.leading));
  });
}

void run(const Gemm::Args& args, Context& context) {
  OpenBlas& library = openblas();
  const peer::ThreadCount threads(context.threads(), library.threads, library.set_threads);
  if (args.c.dtype == DType::f32) {
    multiply<float>(args, library.sgemm, library.sgemv);
  } else {
    multiply<double>(args, library.dgemm, library.dgemv);
  }
}

const Rung<Gemm> self{{.name = "openblas",
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
