// SPDX-License-Identifier: Apache-2.0
// elementwise: how the peers of peer_modules/ are loaded and called.
#pragma once

#include <dlfcn.h>

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/elementwise/peer_modules/module.hpp"

namespace rung::peer_elementwise {

/// The instruction set that our own rungs use: like is compared with like.
inline const char* variant() {
#if defined(__x86_64__)
  return cpu::isa() == cpu::Isa::avx512 ? "avx512" : "avx2";
#else
  return "baseline";
#endif
}

/// Full path of a module: modules lie where librung lies, wherever that was installed.
inline std::string beside_librung(const std::string& file) {
  Dl_info here;
  static const int anchor = 0;
  if (dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) return file;
  const std::string self = here.dli_fname;
  const std::size_t slash = self.rfind('/');
  return slash == std::string::npos ? file : self.substr(0, slash + 1) + file;
}

struct Module {
  std::string compiled_for = variant();
  DynamicLibrary library{"RUNG_PEER_ELEMENTWISE",
                         {beside_librung("librung_peer_elementwise_" + compiled_for + ".so")}};
  Run<float>* f32;
  Run<double>* f64;

  /// `peer`: eigen, std or std_parallel.
  explicit Module(const std::string& peer) {
    library.require(f32, ("rung_elementwise_" + peer + "_f32").c_str());
    library.require(f64, ("rung_elementwise_" + peer + "_f64").c_str());
  }

  [[nodiscard]] Support present() const {
#if defined(__x86_64__)
    if (cpu::isa() == cpu::Isa::scalar) return unsupported("built for AVX2 and AVX-512");
#endif
    return library.present();
  }

  void run(const Elementwise::Args& args, int threads) const {
    if (args.z.dtype == DType::f32) {
      call(args, threads, f32);
    } else {
      call(args, threads, f64);
    }
  }

 private:
  template <class T>
  static void call(const Elementwise::Args& args, int threads, Run<T>* function) {
    const auto in = [&](std::size_t i) { return static_cast<const T*>(args.in[i].data); };
    const Call<T> plain{args.function, static_cast<T>(args.alpha),   in(0),       in(1),
                        in(2),         static_cast<T*>(args.z.data), args.size(), threads};
    function(&plain);
  }
};

/// What all three take.
inline Support supports_call(const Elementwise::Args& args) {
  if (args.z.dtype != DType::f32 && args.z.dtype != DType::f64) {
    return unsupported("compared in f32 and f64");
  }
  return args.flat() ? supported : unsupported("compared on contiguous tensors");
}

}  // namespace rung::peer_elementwise
