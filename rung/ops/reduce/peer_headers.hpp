// SPDX-License-Identifier: Apache-2.0
// The module that holds the peers std, tbb and eigen of reduce.
#pragma once

#include <dlfcn.h>

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/reduce/peer_call.hpp"
#include "rung/ops/reduce/peer_headers/module.hpp"

namespace rung::reduce_peer {

/// The module for the instruction set that our own rungs use, beside librung wherever that lies.
struct Module {
  std::string compiled_for = cpu::isa() == cpu::Isa::avx512 ? "avx512" : "avx2";
  DynamicLibrary library{"RUNG_PEER_REDUCE", {path("librung_peer_reduce_" + compiled_for + ".so")}};
  peer_reduce::Run* run;
  peer_reduce::Version* version;

  Module() {
    library.require(run, "rung_reduce_peer");
    library.require(version, "rung_reduce_peer_version");
  }
  static std::string path(const std::string& file) {
    Dl_info here;
    static const int anchor = 0;
    if (dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) return file;
    const std::string self = here.dli_fname;
    const std::size_t slash = self.rfind('/');
    return slash == std::string::npos ? file : self.substr(0, slash + 1) + file;
  }
};

inline Module& module() {
  static Module loaded;
  return loaded;
}

inline Support module_present() {
  if (cpu::isa() == cpu::Isa::scalar) return unsupported("the peer is built for AVX2 and AVX-512");
  return module().library.present();
}

inline std::string module_about(const char* name, peer_reduce::Library library) {
  const int version = module().version(library);
  return std::string(name) + " " + std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + ", " + module().compiled_for;
}

inline void run_module(const Reduce::Args& args, int threads, peer_reduce::Library library) {
  const Shape shape = shape_of(args);
  peer_reduce::Call call{};
  call.library = library;
  switch (args.operation) {
    case Reduction::product:
      call.operation = peer_reduce::Operation::product;
      break;
    case Reduction::min:
      call.operation = peer_reduce::Operation::min;
      break;
    case Reduction::max:
      call.operation = peer_reduce::Operation::max;
      break;
    case Reduction::mean:
      call.operation = peer_reduce::Operation::mean;
      break;
    case Reduction::norm:
      call.operation = peer_reduce::Operation::norm;
      break;
    default:
      call.operation = peer_reduce::Operation::sum;
  }
  call.is_f64 = args.x.dtype == DType::f64;
  call.x = args.x.data;
  call.y = args.y.data;
  call.outer = shape.outer;
  call.length = shape.length;
  call.inner = shape.inner;
  call.threads = threads;
  if (!module().run(&call)) throw Error(ErrorCode::out_of_memory, "the peer has no memory left");
}

}  // namespace rung::reduce_peer
