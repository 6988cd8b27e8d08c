// SPDX-License-Identifier: Apache-2.0
// gemm / clblast: the peer CLBlast, CLBlastSgemm, on the context's queue.
//
// Kernels  CLBlast compiles its kernels on first use, with parameters from its tuning database for
// the device's name, else with defaults: an untuned device, such as PoCL on a new CPU, stays below
// its best.
// Vectors  use gemm too: CLBlast 1.5's gemv reads y even if beta is 0, and propagates its NaN.
// Limits   f32; no bias, no activation.
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/opencl/device.hpp"
#include "rung/ops/gemm/peers/call.hpp"

namespace rung {
namespace {

enum Layout : int { row_major = 101 };
enum Transpose : int { as_is = 111, transposed = 112 };

using GemmFunction = int(int layout, int transpose_a, int transpose_b, std::size_t m, std::size_t n,
                         std::size_t k, float alpha, cl_mem a, std::size_t a_start, std::size_t lda,
                         cl_mem b, std::size_t b_start, std::size_t ldb, float beta, cl_mem c,
                         std::size_t c_start, std::size_t ldc, cl_command_queue* queue,
                         cl_event* event);

struct ClBlast {
  DynamicLibrary library{"RUNG_PEER_CLBLAST", {"libclblast.so.1"}};
  GemmFunction* gemm;

  ClBlast() { library.require(gemm, "CLBlastSgemm"); }
};

ClBlast& clblast() {
  static ClBlast loaded;
  return loaded;
}

Support present() { return clblast().library.present(); }

/// Returns the description of the library, which has no version function.
std::string about() { return "CLBlast 1, its parameters for this device or its defaults"; }

Support supports(const Gemm::Args& args, const Context&) {
  if (args.a.dtype != DType::f32) return unsupported("this peer is called for f32");
  return peer::supports_call(args, peer::int32_limit);
}

/// Matrix operand in CLBlast's terms.
struct Operand {
  cl_mem buffer;
  std::size_t start;  // in elements
  Operand(int device, const void* data) {
    const opencl::BufferPlace place = opencl::place_of(device, data);
    buffer = place.buffer;
    start = place.offset / sizeof(float);
  }
};

void check(int status) {
  if (status == 0) return;
  throw Error(ErrorCode::device, "CLBlast: status " + std::to_string(status));
}

void run(const Gemm::Args& args, Context& context) {
  const ClBlast& library = clblast();
  const int device = context.device().index;
  cl_command_queue queue = opencl::open_device(device).queue;
  const auto alpha = static_cast<float>(args.alpha);
  const auto beta = static_cast<float>(args.beta);
  const auto flag = [](const peer::Matrix& x) { return x.transposed ? transposed : as_is; };
  const auto size = [](std::int64_t extent) { return static_cast<std::size_t>(extent); };
  peer::for_each_matrix(args, [&](const peer::BlasArguments& call) {
    const Operand a(device, call.a.data), b(device, call.b.data), c(device, call.c.data);
    check(library.gemm(row_major, flag(call.a), flag(call.b), size(call.m), size(call.n),
                       size(call.k), alpha, a.buffer, a.start, size(call.a.leading), b.buffer,
                       b.start, size(call.b.leading), beta, c.buffer, c.start, size(call.c.leading),
                       &queue, nullptr));
  });
}

const Rung<Gemm> self{{.name = "clblast",
                       .backend = Backend::opencl,
                       .peer = true,
                       .about = about,
                       .present = present,
                       .supports = supports,
                       .run = run}};

}  // namespace
}  // namespace rung
