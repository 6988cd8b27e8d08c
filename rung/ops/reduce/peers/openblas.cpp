// SPDX-License-Identifier: Apache-2.0
// reduce / openblas: the peer OpenBLAS, its nrm2 and its extensions sum and imax, imin.
//
// Kernels  selected for the instruction set that our own rungs use, regardless of
//          OPENBLAS_CORETYPE; RUNG_PEER_OPENBLAS_CORETYPE selects another.
// Wrong    cblas_ssum of 0.3.21 for SkylakeX returns wrong sums, as `rung check` found (for example
//          for 1000 elements): sums of f32 are left out.
// Limits   one contiguous vector of f32 or f64 at a time, 32-bit sizes. asum and iamax use absolute
//          values, so they compute something else than our operations.
#include <limits>
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/reduce/peers/call.hpp"
#include "rung/peers/thread_count.hpp"

namespace rung {
namespace {
using namespace reduce_peer;

template <class T>
using ValueFunction = T(int count, const T* x, int step);
template <class T>
using IndexFunction = std::size_t(int count, const T* x, int step);

const char* core_type() {
  if (const char* requested = std::getenv("RUNG_PEER_OPENBLAS_CORETYPE")) return requested;
  switch (cpu::isa()) {
    case cpu::Isa::avx512:
      return "SkylakeX";
    case cpu::Isa::avx2:
      return "Haswell";
    default:
      return nullptr;  // OpenBLAS chooses
  }
}

template <class T>
struct Functions {
  ValueFunction<T>* sum;
  ValueFunction<T>* norm;
  IndexFunction<T>* argmax;
  IndexFunction<T>* argmin;
};

struct OpenBlas {
  ScopedEnvironment core{"OPENBLAS_CORETYPE", core_type()};  // read while the library is loaded
  DynamicLibrary library{"RUNG_PEER_OPENBLAS", {"libopenblas.so.0"}};
  Functions<float> f32;
  Functions<double> f64;
  void (*set_threads)(int);
  const char* (*config)();
  const char* (*corename)();
  std::atomic<int> threads = 0;

  OpenBlas() {
    library.require(f32.sum, "cblas_ssum");
    library.require(f64.sum, "cblas_dsum");
    library.require(f32.norm, "cblas_snrm2");
    library.require(f64.norm, "cblas_dnrm2");
    library.require(f32.argmax, "cblas_ismax");
    library.require(f64.argmax, "cblas_idmax");
    library.require(f32.argmin, "cblas_ismin");
    library.require(f64.argmin, "cblas_idmin");
    library.require(set_threads, "openblas_set_num_threads");
    library.require(config, "openblas_get_config");
    library.require(corename, "openblas_get_corename");
  }
};

OpenBlas& openblas() {
  static OpenBlas loaded;
  return loaded;
}

Support present() { return openblas().library.present(); }

std::string about() {
  const std::string config = openblas().config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + ", " + openblas().corename();
}

Support supports(const Reduce::Args& args, const Context&) {
  if (const Support plain = supports_plain(args, true); !plain) return plain;
  const Shape shape = shape_of(args);
  if (shape.inner != 1 || shape.length > std::numeric_limits<int>::max()) {
    return unsupported("contiguous vectors of up to 2^31 - 1 elements");
  }
  switch (args.operation) {
    case Reduction::norm:
      return supported;
    case Reduction::sum:
    case Reduction::mean:
      return args.x.dtype == DType::f64 ? supported : unsupported("its f32 sums are wrong");
    case Reduction::argmax:
    case Reduction::argmin:
      if (args.y.dtype == DType::i64) return supported;
      return unsupported("indices of 64 bits");
    default:
      return unsupported("OpenBLAS has no such reduction");
  }
}

template <class T>
void each_row(const Reduce::Args& args, const Functions<T>& functions) {
  const Shape shape = shape_of(args);
  const int n = static_cast<int>(shape.length);
  for (std::int64_t i = 0; i < shape.outer; ++i) {
    const T* x = static_cast<const T*>(args.x.data) + i * shape.length;
    T* y = static_cast<T*>(args.y.data) + i;
    switch (args.operation) {
      case Reduction::sum:
        *y = functions.sum(n, x, 1);
        break;
      case Reduction::mean:
        *y = functions.sum(n, x, 1) / static_cast<T>(n);
        break;
      case Reduction::norm:
        *y = functions.norm(n, x, 1);
        break;
      default: {
        const auto function =
            args.operation == Reduction::argmax ? functions.argmax : functions.argmin;
        static_cast<std::int64_t*>(args.y.data)[i] = static_cast<std::int64_t>(function(n, x, 1));
      }
    }
  }
}

void run(const Reduce::Args& args, Context& context) {
  OpenBlas& library = openblas();
  const peer::ThreadCount threads(context.threads(), library.threads, library.set_threads);
  if (args.x.dtype == DType::f32) {
    each_row<float>(args, library.f32);
  } else {
    each_row<double>(args, library.f64);
  }
}

const Rung<Reduce> self{{.name = "openblas",
                         .peer = true,
                         .about = about,
                         .present = present,
                         .supports = supports,
                         .run = run}};

}  // namespace
}  // namespace rung
