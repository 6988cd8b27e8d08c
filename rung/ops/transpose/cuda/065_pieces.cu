// SPDX-License-Identifier: Apache-2.0
// transpose / pieces
//
// Idea     where a run of elements stays together, the matrix is one of pieces: heads of attention,
//          pixels of an image that is turned. A block moves a tile of them, about square, so that
//          both tensors are reached in stretches of several pieces; a thread has 8 or 16 elements
//          under way. Pieces of at least a sector go straight from x to y, in the order of y;
//          shorter ones by way of shared memory, read in the order of x.
// Changes  against naive_write_coalesced: indices are taken apart within a tile, by
//          multiplications, and a thread has more than one load under way.
// Cost     two multiplications by a reciprocal an element and side.
// Limits   runs. Bytes and halves, which stay such only where alignment forbids wider elements,
//          waste the width of the path.
#include "rung/core/bounds.hpp"
#include "rung/ops/transpose/cuda/detail/pieces.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;
using namespace transpose_cuda::pieces;

constexpr int sector = 32;

template <class T>
__global__ void __launch_bounds__(threads) transpose_long_pieces(Pieces<T> p) {
  const Tile<T> tile(p);
  T values[items<T>];
#pragma unroll
  for (int i = 0; i < items<T>; ++i) {
    const Element at = along_y<T>(p.cut, i * threads + static_cast<int>(threadIdx.x));
    if (exists(tile, at)) values[i] = tile.x[at.row * p.x_row + at.column * p.x_column + at.e];
  }
#pragma unroll
  for (int i = 0; i < items<T>; ++i) {
    const Element at = along_y<T>(p.cut, i * threads + static_cast<int>(threadIdx.x));
    if (exists(tile, at)) tile.y[at.column * p.y_row + at.row * p.y_column + at.e] = values[i];
  }
}

template <class T>
struct Kept {
  T at[1];  // as many as the launch has room for
};

template <class T>
__global__ void __launch_bounds__(threads) transpose_short_pieces(Pieces<T> p) {
  T* kept = shared<Kept<T>>().at;
  const Tile<T> tile(p);
  T values[items<T>];
#pragma unroll
  for (int i = 0; i < items<T>; ++i) {
    const Element at = along_x<T>(p.cut, i * threads + static_cast<int>(threadIdx.x));
    if (exists(tile, at)) values[i] = tile.x[at.row * p.x_row + at.column * p.x_column + at.e];
  }
#pragma unroll
  for (int i = 0; i < items<T>; ++i) {
    const Element at = along_x<T>(p.cut, i * threads + static_cast<int>(threadIdx.x));
    if (exists(tile, at)) {
      kept[at.row * p.cut.pitch + at.column * p.cut.run.value + at.e] = values[i];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < items<T>; ++i) {
    const Element at = along_y<T>(p.cut, i * threads + static_cast<int>(threadIdx.x));
    if (!exists(tile, at)) continue;
    tile.y[at.column * p.y_row + at.row * p.y_column + at.e] =
        kept[at.row * p.cut.pitch + at.column * p.cut.run.value + at.e];
  }
}

bool is_short(const Moves& m) { return m.run * m.element_bytes < sector; }

Support supports(const Transpose::Args& args, const Context&) {
  const Moves& m = args.moves;
  if (m.empty()) return supported;
  if (m.run == 1) return unsupported("takes runs of several elements");
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  return cut_of(m).tiles() <= most ? supported : unsupported("more than 2^31 tiles");
}

double estimate(const Transpose::Args& args, const Context& context) {
  const Moves& m = args.moves;
  if (m.empty()) return 0;
  const Cut cut = cut_of(m);
  const double fraction = is_short(m) ? 0.085 * m.element_bytes : 0.8;
  // Threads of a tile that is not full idle; those of a small one wait all the same.
  const double blocks = static_cast<double>(cut.tiles()) * static_cast<double>(m.matrices());
  const double full = static_cast<double>(larger<std::int64_t>(cut.elements(), threads));
  return tiled_seconds(args, context, {.rows = 1, .columns = 1, .block = threads}, fraction) *
         larger(1.0, blocks * full / static_cast<double>(m.elements()));
}

void run(const Transpose::Args& args, Context& context) {
  constexpr std::int64_t most_matrices = 0xffff;
  const Moves& m = args.moves;
  with_words<1, 2, 4, 8, 16>(args, [&]<class T>() {
    Pieces<T> pieces{.x = static_cast<const T*>(args.x.data),
                     .y = static_cast<T*>(args.y.data),
                     .run = m.run,
                     .rows = m.rows,
                     .columns = m.columns,
                     .x_row = m.x_row,
                     .x_column = m.x_column,
                     .y_row = m.y_row,
                     .y_column = m.y_column,
                     .batch = m.batch,
                     .first_matrix = 0,
                     .cut = cut_of(m)};
    const Cut& cut = pieces.cut;
    for (; pieces.first_matrix < m.matrices(); pieces.first_matrix += most_matrices) {
      launch(
          context,
          {.grid = {cut.tiles(), smaller(most_matrices, m.matrices() - pieces.first_matrix), 1},
           .block = threads,
           .shared_bytes =
               is_short(m) ? static_cast<std::size_t>(cut.rows.value) * cut.pitch * sizeof(T) : 0},
          is_short(m) ? transpose_short_pieces<T> : transpose_long_pieces<T>, pieces);
    }
  });
}

const Rung<Transpose> self{{.name = "pieces",
                            .step = 65,
                            .after = "coarsened",
                            .backend = device_backend,
                            .supports = supports,
                            .estimate = estimate,
                            .run = run}};

}  // namespace
}  // namespace rung
