// SPDX-License-Identifier: Apache-2.0
// gemm / blis: the peer BLIS through BLIS's typed interface, bli_sgemm and bli_dgemm.
//
// Kernels  BLIS 0.9 falls back to generic C kernels on AMD processors newer than Zen 3. It takes
// the configuration as a number that differs between versions, so numbers are looked up by name
// first. RUNG_PEER_BLIS_ARCH selects another configuration by name.
// Vectors  n = 1 and m = 1 use gemv: as fast as gemm (16.7 Gflop/s at 4096 on one Zen 5 core), but
// single-threaded.
// Limits   no bf16; no bias, no activation.
#include <cstdlib>
#include <string>
#include <string_view>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/peers/call.hpp"

namespace rung {
namespace {

using Size = std::int64_t;  // BLIS's dim_t and inc_t
constexpr int as_is = 0;    // trans_t and conj_t: no transpose, no conjugate

template <class T>
using GemmFunction = void(int transpose_a, int transpose_b, Size m, Size n, Size k, const T* alpha,
                          const T* a, Size a_row, Size a_column, const T* b, Size b_row,
                          Size b_column, const T* beta, T* c, Size c_row, Size c_column);
template <class T>
using GemvFunction = void(int transpose, int conjugate, Size m, Size n, const T* alpha, const T* a,
                          Size a_row, Size a_column, const T* x, Size x_step, const T* beta, T* y,
                          Size y_step);

std::string_view configuration() {
  if (const char* requested = std::getenv("RUNG_PEER_BLIS_ARCH")) return requested;
  switch (cpu::isa()) {
    case cpu::Isa::avx512:
      return "skx";
    case cpu::Isa::avx2:
      return "haswell";
    default:
      return "";  // the library's default
  }
}

struct Blis {
  DynamicLibrary library{"RUNG_PEER_BLIS", {"libblis.so.4", "libblis.so.3"}};
  GemmFunction<float>* sgemm;
  GemmFunction<double>* dgemm;
  GemvFunction<float>* sgemv;
  GemvFunction<double>* dgemv;
  void (*set_threads)(Size);
  const char* (*version)();
  int (*arch_id)();
  const char* (*arch_name)(int id);
  void (*initialize)();
  std::atomic<int> threads = 0;

  Blis() {
    library.require(sgemm, "bli_sgemm");
    library.require(dgemm, "bli_dgemm");
    library.require(sgemv, "bli_sgemv");
    library.require(dgemv, "bli_dgemv");
    library.require(set_threads, "bli_thread_set_num_threads");
    library.require(version, "bli_info_get_version_str");
    library.require(arch_id, "bli_arch_query_id");
    library.require(arch_name, "bli_arch_string");
    library.require(initialize, "bli_init");
    if (!library.present()) return;
    // The first initialization reads the configuration. The list of names ends with "generic".
    std::string number;
    const std::string_view wanted = configuration();
    for (int id = 0; !wanted.empty() && number.empty(); ++id) {
      const std::string_view name = arch_name(id);
      if (name == wanted) number = std::to_string(id);
      if (name == "generic" || id == 100) break;
    }
    const ScopedEnvironment arch("BLIS_ARCH_TYPE", number.empty() ? nullptr : number.c_str());
    initialize();
  }
};

Blis& blis() {
  static Blis loaded;
  return loaded;
}

Support present() { return blis().library.present(); }

std::string about() {
  return std::string("BLIS ") + blis().version() + ", " + blis().arch_name(blis().arch_id());
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.dtype != args.a.dtype || (args.c.dtype != DType::f32 && args.c.dtype != DType::f64)) {
    return unsupported("BLIS multiplies f32 and f64");
  }
  return peer::supports_call(args, std::numeric_limits<Size>::max());
}

struct Strides {
  explicit Strides(const peer::Matrix& matrix)
      : row(matrix.transposed ? 1 : matrix.leading),
        column(matrix.transposed ? matrix.leading : 1) {}
  Size row, column;
};

template <class T>
void multiply(const Gemm::Args& args, GemmFunction<T>* gemm, GemvFunction<T>* gemv) {
  const T alpha = static_cast<T>(args.alpha);
  const T beta = static_cast<T>(args.beta);
  const auto in = [](const std::byte* data) { return reinterpret_cast<const T*>(data); };
  const auto out = [](std::byte* data) { return reinterpret_cast<T*>(data); };
  peer::for_each_matrix(args, [&](const peer::BlasArguments& call) {
    if (call.m == 1 || call.n == 1) {
      const peer::VectorCall v = peer::vector_call(call);
      const Strides stride(v.matrix);
      gemv(as_is, as_is, v.rows, v.columns, &alpha, in(v.matrix.data), stride.row, stride.column,
           in(v.x), v.x_step, &beta, out(v.y), v.y_step);
      return;
    }
    const Strides a(call.a);
    const Strides b(call.b);
    gemm(as_is, as_is, call.m, call.n, call.k, &alpha, in(call.a.data), a.row, a.column,
         in(call.b.data), b.row, b.column, &beta, out(call.c.data), call.c.leading, 1);
  });
}

void run(const Gemm::Args& args, Context& context) {
  Blis& library = blis();
  const peer::ThreadCount threads(peer::useful_threads(args, context), library.threads,
                                  [](int count) { blis().set_threads(count); });
  if (args.c.dtype == DType::f32) {
    multiply<float>(args, library.sgemm, library.sgemv);
  } else {
    multiply<double>(args, library.dgemm, library.dgemv);
  }
}

const Rung<Gemm> self{{.name = "blis",
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
