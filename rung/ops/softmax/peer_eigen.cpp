// SPDX-License-Identifier: Apache-2.0
// softmax / eigen: the peer Eigen, softmax in its expressions.
//
// Kernels  chosen when Eigen is compiled, so there is a module for each instruction set beside
//          librung (see peer_eigen/module.hpp); the one that our own rungs would use is loaded.
// Threads  one: Eigen divides element-wise work only for who does it by hand. Divided so, rows of
//          4096x4096 took 3.2 ms on two threads of a Zen 5 vCPU, where ours take 2.8.
// Limits   f32 and f64, contiguous rows at equal distances; finite values, as its answers to
//          infinities and NaN are not ours.
#include <dlfcn.h>

#include <limits>
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/softmax/peer_eigen/module.hpp"
#include "rung/ops/softmax/value_range.hpp"

namespace rung {
namespace {

/// Full path of a module: modules lie where librung lies, wherever that was installed.
std::string beside_librung(const std::string& file) {
  Dl_info here;
  static const int anchor = 0;
  if (dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) return file;
  const std::string self = here.dli_fname;
  const std::size_t slash = self.rfind('/');
  return slash == std::string::npos ? file : self.substr(0, slash + 1) + file;
}

/// The module for the instruction set that our own rungs use.
std::string variant() {
#if defined(__x86_64__)
  return cpu::isa() == cpu::Isa::avx512 ? "avx512" : "avx2";
#else
  return "baseline";
#endif
}

struct Eigen {
  std::string compiled_for = variant();
  DynamicLibrary library{"RUNG_PEER_SOFTMAX_EIGEN",
                         {beside_librung("librung_peer_softmax_eigen_" + compiled_for + ".so")}};
  softmax_eigen::RunF32* run_f32;
  softmax_eigen::RunF64* run_f64;
  softmax_eigen::Version* version;

  Eigen() {
    library.require(run_f32, "rung_softmax_eigen_f32");
    library.require(run_f64, "rung_softmax_eigen_f64");
    library.require(version, "rung_softmax_eigen_version");
  }
};

Eigen& eigen() {
  static Eigen loaded;
  return loaded;
}

Support present() {
#if defined(__x86_64__)
  if (cpu::isa() == cpu::Isa::scalar) return unsupported("the peer is built for AVX2 and AVX-512");
#endif
  return eigen().library.present();
}

std::string about() {
  const int version = eigen().version();
  return "Eigen " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
         "." + std::to_string(version % 100) + ", " + eigen().compiled_for + ", one thread";
}

Support supports(const Softmax::Args& args, const Context& context) {
  if (args.empty()) return unsupported("nothing to do");
  if (args.y.dtype != args.x.dtype || (args.x.dtype != DType::f32 && args.x.dtype != DType::f64)) {
    return unsupported("the peer Eigen does f32 and f64");
  }
  if (!args.rows.are_contiguous() || args.rows.others.rank > 1) {
    return unsupported("rows must be contiguous and equally far apart");
  }
  if (!softmax_values::are_below(std::numeric_limits<double>::infinity(), args, context)) {
    return unsupported("answers infinities and NaN otherwise than we do");
  }
  return supported;
}

template <class T>
void run_as(const Softmax::Args& args, void (*function)(const softmax_eigen::Call<T>*)) {
  const auto& strides = args.rows.others.strides;
  const bool several = args.rows.others.rank == 1;
  const softmax_eigen::Call<T> call{args.count(),
                                    args.length(),
                                    static_cast<const T*>(args.x.data),
                                    several ? strides[0][0] : 0,
                                    static_cast<const T*>(args.dy.data),
                                    several ? strides[1][0] : 0,
                                    static_cast<T*>(args.y.data),
                                    several ? strides[2][0] : 0,
                                    static_cast<T>(args.scale),
                                    args.log,
                                    args.backward};
  function(&call);
}

void run(const Softmax::Args& args, Context&) {
  if (args.x.dtype == DType::f32) {
    run_as(args, eigen().run_f32);
  } else {
    run_as(args, eigen().run_f64);
  }
}

const Rung<Softmax> self{{.name = "eigen",
                          .peer = true,
                          .about = about,
                          .present = present,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
