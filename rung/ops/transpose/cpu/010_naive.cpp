// SPDX-License-Identifier: Apache-2.0
// transpose / naive
//
// Idea     the definition: y is written from its first element to its last, each element fetched
//          from wherever it is in x.
// Changes  nothing yet: this is where the ladder stands.
// Cost     every element read and written once, in principle. But each read touches another cache
//          line, and soon another page; by the time the line's next element is wanted, the line is
//          gone. Where a row of x is a power of two long, even a short column of lines is too much:
//          all of them fall into one set of the cache.
// Limits   every valid call; at 8192 x 8192 f32 some 2 % of what memory could do.
// Source   any textbook.
#include "rung/ops/transpose/cpu/detail/elements.hpp"

namespace rung {
namespace {
using namespace transpose_cpu;

template <class T>
void naive(const Transpose::Args& args) {
  const Moves& m = args.moves;
  for (std::int64_t matrix = 0; matrix < m.matrices(); ++matrix) {
    const T* x = elements<T>(args.x) + m.batch.offset<1>(matrix);
    T* y = elements<T>(args.y) + m.batch.offset<0>(matrix);
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
  with_elements(args, [&]<class T>() { naive<T>(args); });
}

const Rung<Transpose> self{{.name = "naive", .step = 10, .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
