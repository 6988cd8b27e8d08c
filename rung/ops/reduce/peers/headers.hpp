// SPDX-License-Identifier: Apache-2.0
// The module that holds the peers std, tbb and eigen of reduce.
#pragma once

#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/ops/reduce/peers/call.hpp"
#include "rung/ops/reduce/peers/headers/module.hpp"
#include "rung/peers/module.hpp"

namespace rung::reduce_peer {

/// The module for the instruction set that our own rungs use, in librung's folder.
struct Module {
  DynamicLibrary library{"RUNG_PEER_REDUCE", {peers::isa_module_path("reduce")}};
  peer_reduce::Run* run;
  peer_reduce::Version* version;

  Module() {
    library.require(run, "rung_reduce_peer");
    library.require(version, "rung_reduce_peer_version");
  }
};

inline Module& module() {
  static Module loaded;
  return loaded;
}

inline Support module_present() {
  if (const Support here = peers::isa_modules_present(); !here) return here;
  return module().library.present();
}

inline std::string module_about(const char* name, peer_reduce::Library library) {
  const int version = module().version(library);
  return std::string(name) + " " + peers::version_text(version) + ", " + peers::module_isa();
}

inline void run_module(const Reduce::Args& args, int threads, peer_reduce::Library library) {
  const Shape shape = shape_of(args);
  peer_reduce::ReducePeerArguments call{};
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
