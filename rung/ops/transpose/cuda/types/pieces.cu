// SPDX-License-Identifier: Apache-2.0
// transpose / pieces
//
// Idea     if runs of elements stay together (heads of attention, pixels of a rotated image), they
//          are the elements of the matrix, called pieces. A block moves a roughly square tile of
//          pieces, which gives stretches of several pieces in x and in y; a thread has 8 or 16
//          elements in flight. Pieces of at least a sector go directly from x to y, in y's order;
//          shorter ones are loaded in x's order and pass through shared memory.
// Changes  against naive_write_coalesced: indices are decomposed within a tile, by multiplications,
//          and a thread has more than one load in flight.
// Cost     two multiplications by a reciprocal per element for each of x and y.
// Limits   runs. Elements of 1 and 2 bytes, which remain only if alignment prevents wider elements,
//          waste the width of the accesses.
#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/ops/transpose/cuda/detail/matrices.hpp"

namespace rung {
namespace {

using namespace transpose_cuda;

constexpr int threads = 256;
template <class T>
constexpr int items = sizeof(T) == 16 ? 8 : 16;

/// Division of numbers below 2^16 by a divisor known on the host.
struct Divisor {
  int value;
  std::uint32_t reciprocal;  // 2^32 / value, rounded up; 0 for value 1

  explicit Divisor(std::int64_t v = 1)
      : value(static_cast<int>(v)),
        reciprocal(
            static_cast<std::uint32_t>((std::uint64_t{1} << 32) / static_cast<unsigned>(v) + 1)) {}
  [[nodiscard]] __device__ __forceinline__ int of(int number) const {
    if (value == 1) return number;
    return static_cast<int>(__umulhi(static_cast<std::uint32_t>(number), reciprocal));
  }
};

/// Partition into tiles of `rows` x `columns` pieces of x, each of `run` elements.
struct Cut {
  Divisor run, rows, columns, line;  // line: elements of x's row
  int pitch;                         // between rows in shared memory
  std::int64_t runs, across, down;   // tiles

  [[nodiscard]] std::int64_t tiles() const { return runs * across * down; }
  [[nodiscard]] std::int64_t elements() const {
    return std::int64_t{run.value} * rows.value * columns.value;
  }
};

inline Cut cut_of(const Moves& m) {
  const std::int64_t capacity = threads * (m.element_bytes == 16 ? 8 : 16);
  std::int64_t run = m.run;
  if (run > capacity) run = round_up(ceil_div(run, ceil_div(run, capacity)), 32);
  const std::int64_t pieces = capacity / run;
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= pieces) ++side;
  std::int64_t columns = smaller(m.columns, side);
  const std::int64_t rows = smaller(m.rows, pieces / columns);
  columns = smaller(m.columns, pieces / rows);
  // Rows in shared memory are padded to continue in the banks where the previous row ends.
  const std::int64_t line = columns * run;
  const std::int64_t banks = 128 / m.element_bytes;
  const std::int64_t padding = (run - line % banks + banks) % banks;
  return {.run = Divisor(run),
          .rows = Divisor(rows),
          .columns = Divisor(columns),
          .line = Divisor(line),
          .pitch = static_cast<int>(padding <= line ? line + padding : line),
          .runs = ceil_div(m.run, run),
          .across = ceil_div(m.columns, columns),
          .down = ceil_div(m.rows, rows)};
}

template <class T>
struct Pieces {
  const T* x;
  T* y;
  std::int64_t run, rows, columns;
  std::int64_t x_row, x_column, y_row, y_column;
  Collapsed<2> batch;
  std::int64_t first_matrix;
  Cut cut;
};

/// Tile of this block: its start in x and y, and its extents, clipped to the matrix.
template <class T>
struct PieceTile {
  const T* x;
  T* y;
  int run, rows, columns;

  __device__ __forceinline__ explicit PieceTile(const Pieces<T>& p) {
    const auto tile = static_cast<std::int64_t>(blockIdx.x);
    const std::int64_t e = tile % p.cut.runs * p.cut.run.value;
    const std::int64_t row = tile / p.cut.runs % p.cut.down * p.cut.rows.value;
    const std::int64_t column = tile / p.cut.runs / p.cut.down * p.cut.columns.value;
    std::int64_t at[2];
    p.batch.offsets(p.first_matrix + blockIdx.y, at);
    x = p.x + at[1] + row * p.x_row + column * p.x_column + e;
    y = p.y + at[0] + column * p.y_row + row * p.y_column + e;
    run = static_cast<int>(p.run - e < p.cut.run.value ? p.run - e : p.cut.run.value);
    rows = static_cast<int>(p.rows - row < p.cut.rows.value ? p.rows - row : p.cut.rows.value);
    columns = static_cast<int>(p.columns - column < p.cut.columns.value ? p.columns - column
                                                                        : p.cut.columns.value);
  }
};

struct Element {
  int e, row, column;
};
/// Returns element `at` of a tile, counted in y's order (along_y) or in x's (along_x).
template <class T>
__device__ __forceinline__ Element along_y(const Cut& cut, int at) {
  const int piece = cut.run.of(at);
  const int column = cut.rows.of(piece);
  return {at - piece * cut.run.value, piece - column * cut.rows.value, column};
}
template <class T>
__device__ __forceinline__ Element along_x(const Cut& cut, int at) {
  const int row = cut.line.of(at);
  const int rest = at - row * cut.line.value;
  const int column = cut.run.of(rest);
  return {rest - column * cut.run.value, row, column};
}
template <class T>
__device__ __forceinline__ bool exists(const PieceTile<T>& tile, const Element& i) {
  return i.e < tile.run && i.row < tile.rows && i.column < tile.columns;
}

constexpr int sector = 32;

template <class T>
__global__ void __launch_bounds__(threads) transpose_long_pieces(Pieces<T> p) {
  const PieceTile<T> tile(p);
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
  T at[1];  // array size is set by the launch
};

template <class T>
__global__ void __launch_bounds__(threads) transpose_short_pieces(Pieces<T> p) {
  T* kept = shared<Kept<T>>().at;
  const PieceTile<T> tile(p);
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

Work work(const Transpose::Args& args, const Context&) {
  const Cut cut = cut_of(args.moves);
  const std::int64_t blocks = cut.tiles() * args.moves.matrices();
  return {.operations = 2 * blocks * cut.elements() * args.moves.element_bytes,
          .blocks = blocks,
          .resident = 2048 / threads};
}

void run(const Transpose::Args& args, Context& context) {
  constexpr std::int64_t max_matrices = 0xffff;
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
    for (; pieces.first_matrix < m.matrices(); pieces.first_matrix += max_matrices) {
      launch(
          context,
          {.grid = {cut.tiles(), smaller(max_matrices, m.matrices() - pieces.first_matrix), 1},
           .block = threads,
           .shared_bytes =
               is_short(m) ? static_cast<std::size_t>(cut.rows.value) * cut.pitch * sizeof(T) : 0},
          is_short(m) ? transpose_short_pieces<T> : transpose_long_pieces<T>, pieces);
    }
  });
}

const Rung<Transpose> self{{.name = "pieces",
                            .after = "coarsened",
                            .backend = device_backend,
                            .supports = supports,
                            .passes = {.loads = 1, .stores = 1},
                            .work = work,
                            .run = run}};

}  // namespace
}  // namespace rung
