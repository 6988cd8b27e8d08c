// SPDX-License-Identifier: Apache-2.0
// transpose / openblas: the peer OpenBLAS, cblas_somatcopy and cblas_domatcopy.
//
// Kernels  selected for the instruction set that our own rungs use, regardless of
//          OPENBLAS_CORETYPE, because a slower peer would flatter our rungs;
//          RUNG_PEER_OPENBLAS_CORETYPE selects another.
// Threads  one: omatcopy is single-threaded for any OpenBLAS setting.
// Limits   elements of 4 and 8 bytes that are f32 and f64; it multiplies them by 1, which preserves
//          all bits but the payload of signaling NaNs.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "rung/core/dynamic_library.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/transpose/peers/matrices.hpp"

namespace rung {
namespace {

using transpose_peer::Matrix;

enum Order : int { row_major = 101 };
enum Transposition : int { transposed = 112 };

template <class T>
using Function = void(int order, int transpose, int rows, int columns, T alpha, const T* a, int lda,
                      T* b, int ldb);

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

struct OpenBlas {
  ScopedEnvironment core{"OPENBLAS_CORETYPE", core_type()};  // read while the library is loaded
  DynamicLibrary library{"RUNG_PEER_OPENBLAS", {"libopenblas.so.0"}};
  Function<float>* f32;
  Function<double>* f64;
  const char* (*config)();
  const char* (*corename)();

  OpenBlas() {
    library.require(f32, "cblas_somatcopy");
    library.require(f64, "cblas_domatcopy");
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
  return config.substr(0, config.find(' ', config.find(' ') + 1)) + ", " + openblas().corename() +
         ", one thread";
}

Support supports(const Transpose::Args& args, const Context&) {
  const DType dtype = args.x.dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return unsupported("OpenBLAS has f32 and f64");
  if (args.moves.empty()) return supported;
  const Support support = transpose_peer::supports_matrices(args);
  if (!support) return support;
  // Pairs merged into one opaque element are not numbers.
  if (args.moves.element_bytes != static_cast<int>(size_of(dtype))) {
    return unsupported("OpenBLAS moves single elements");
  }
  const Matrix matrix = transpose_peer::first_matrix(args, args.moves);
  constexpr std::int64_t limit = 0x7fffffff;
  if (std::max({matrix.rows, matrix.columns, matrix.x_row, matrix.y_row}) > limit) {
    return unsupported("a size or stride exceeds its 32-bit integers");
  }
  return supported;
}

template <class T>
void transpose_all(const Transpose::Args& args, Function<T>* function) {
  transpose_peer::for_each_matrix(args, [&](const Matrix& matrix) {
    function(row_major, transposed, static_cast<int>(matrix.rows), static_cast<int>(matrix.columns),
             T{1}, reinterpret_cast<const T*>(matrix.x), static_cast<int>(matrix.x_row),
             reinterpret_cast<T*>(matrix.y), static_cast<int>(matrix.y_row));
  });
}

void run(const Transpose::Args& args, Context&) {
  if (args.x.dtype == DType::f32) {
    transpose_all(args, openblas().f32);
  } else {
    transpose_all(args, openblas().f64);
  }
}

const Rung<Transpose> self{{.name = "openblas",
                            .peer = true,
                            .about = about,
                            .present = present,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
