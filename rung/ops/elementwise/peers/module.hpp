// SPDX-License-Identifier: Apache-2.0
// elementwise: loading and calls of the peers in peer_modules/.
#pragma once

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/elementwise/peers/modules/module.hpp"
#include "rung/peers/module.hpp"

namespace rung::peer_elementwise {

struct Module {
  DynamicLibrary library{"RUNG_PEER_ELEMENTWISE", {peers::isa_module_path("elementwise")}};
  Run<float>* f32;
  Run<double>* f64;

  /// Loads the module's functions for `peer`: eigen, std or std_parallel.
  explicit Module(const std::string& peer) {
    library.require(f32, ("rung_elementwise_" + peer + "_f32").c_str());
    library.require(f64, ("rung_elementwise_" + peer + "_f64").c_str());
  }

  [[nodiscard]] Support present() const {
    if (const Support here = peers::isa_modules_present(); !here) return here;
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
    const ElementwisePeerArguments<T> plain{
        args.function, static_cast<T>(args.alpha),   in(0),       in(1),
        in(2),         static_cast<T*>(args.z.data), args.size(), threads};
    function(&plain);
  }
};

/// Returns supported for arguments that all three peers support.
inline Support supports_call(const Elementwise::Args& args) {
  if (args.z.dtype != DType::f32 && args.z.dtype != DType::f64) {
    return unsupported("compared in f32 and f64");
  }
  return args.flat() ? supported : unsupported("compared on contiguous tensors");
}

}  // namespace rung::peer_elementwise
