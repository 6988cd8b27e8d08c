// SPDX-License-Identifier: Apache-2.0
// gemm / eigen: the peer Eigen: Eigen's product of mapped matrices.
//
// Kernels  Eigen selects its kernels at compile time, so librung has one module per instruction set
// beside it (see peers/eigen/module.hpp) and loads the one that our own rungs would use.
// Vectors  n = 1 and m = 1 use Eigen's matrix-vector product, which runs on one thread.
// Limits   no bf16, which Eigen multiplies element by element; no bias, no activation.
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/gemm/peers/call.hpp"
#include "rung/ops/gemm/peers/eigen/module.hpp"
#include "rung/peers/module.hpp"

namespace rung {
namespace {

struct Eigen {
  DynamicLibrary library{"RUNG_PEER_GEMM_EIGEN", {peers::isa_module_path("gemm_eigen")}};
  peer_eigen::SetThreads* set_threads;
  peer_eigen::MultiplyF32* multiply_f32;
  peer_eigen::MultiplyF64* multiply_f64;
  peer_eigen::Version* version;
  std::atomic<int> threads = 0;

  Eigen() {
    library.require(set_threads, "rung_eigen_set_threads");
    library.require(multiply_f32, "rung_eigen_f32");
    library.require(multiply_f64, "rung_eigen_f64");
    library.require(version, "rung_eigen_version");
  }
};

Eigen& eigen() {
  static Eigen loaded;
  return loaded;
}

Support present() {
  if (const Support here = peers::isa_modules_present(); !here) return here;
  return eigen().library.present();
}

std::string about() {
  const int version = eigen().version();
  return "Eigen " + peers::version_text(version) + ", " + peers::module_isa() + ", OpenMP";
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.dtype != args.a.dtype || (args.c.dtype != DType::f32 && args.c.dtype != DType::f64)) {
    return unsupported("the peer Eigen multiplies f32 and f64");
  }
  return peer::supports_call(args, std::numeric_limits<std::int64_t>::max());
}

template <class T>
void multiply(const Gemm::Args& args, bool (*function)(const peer_eigen::EigenGemmArguments<T>*)) {
  const auto in = [](const std::byte* data) { return reinterpret_cast<const T*>(data); };
  const auto out = [](std::byte* data) { return reinterpret_cast<T*>(data); };
  peer::for_each_matrix(args, [&](const peer::BlasArguments& call) {
    peer_eigen::EigenGemmArguments<T> plain{};
    plain.alpha = static_cast<T>(args.alpha);
    plain.beta = static_cast<T>(args.beta);
    if (call.m == 1 || call.n == 1) {
      const peer::VectorCall v = peer::vector_call(call);
      plain.m = v.rows;
      plain.n = 1;
      plain.k = v.columns;
      plain.a = in(v.matrix.data);
      plain.a_leading = v.matrix.leading;
      plain.a_transposed = v.matrix.transposed;
      plain.b = in(v.x);
      plain.b_leading = v.x_step;
      plain.c = out(v.y);
      plain.c_leading = v.y_step;
    } else {
      plain.m = call.m;
      plain.n = call.n;
      plain.k = call.k;
      plain.a = in(call.a.data);
      plain.a_leading = call.a.leading;
      plain.a_transposed = call.a.transposed;
      plain.b = in(call.b.data);
      plain.b_leading = call.b.leading;
      plain.b_transposed = call.b.transposed;
      plain.c = out(call.c.data);
      plain.c_leading = call.c.leading;
    }
    if (!function(&plain)) throw Error(ErrorCode::out_of_memory, "Eigen has no memory left");
  });
}

void run(const Gemm::Args& args, Context& context) {
  Eigen& library = eigen();
  const peer::ThreadCount threads(peer::useful_threads(args, context), library.threads,
                                  library.set_threads);
  if (args.c.dtype == DType::f32) {
    multiply<float>(args, library.multiply_f32);
  } else {
    multiply<double>(args, library.multiply_f64);
  }
}

const Rung<Gemm> self{{.name = "eigen",
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
