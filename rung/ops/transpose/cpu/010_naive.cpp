// SPDX-License-Identifier: Apache-2.0
// transpose / naive
//
// Idea     The definition: y is written from its first element to its last, each element loaded
//          from its position in x.
// Changes  Baseline.
// Cost     Each load touches another cache line, and often another page; the line is evicted before
//          its next element is needed. Rows of x a power of two apart map to one set of the cache,
//          so that even short columns evict their own lines.
// Limits   Every valid call; at 8192 x 8192 f32 about 2 % of the memory bandwidth.
// Source   any textbook.
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace {

template <class T>
void naive(const Transpose::Args& args) {
  const Transpose::Moves& m = args.moves;
  for (std::int64_t matrix = 0; matrix < m.matrices(); ++matrix) {
    const T* x = static_cast<const T*>(args.x.data) + m.batch.offset<1>(matrix);
    T* y = static_cast<T*>(args.y.data) + m.batch.offset<0>(matrix);
    for (std::int64_t j = 0; j < m.columns; ++j) {
      for (std::int64_t i = 0; i < m.rows; ++i) {
        for (std::int64_t r = 0; r < m.run; ++r) {
          y[j * m.y_row + i * m.y_column + r] = x[i * m.x_row + j * m.x_column + r];
        }
      }
    }
  }
}

void run(const Transpose::Args& args, Context&) {
  transpose_cpu::with_elements(args.moves.element_bytes, [&]<class T>() { naive<T>(args); });
}

const Rung<Transpose> self{{.name = "naive", .step = 10, .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
