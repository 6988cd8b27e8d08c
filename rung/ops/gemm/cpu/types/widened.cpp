// SPDX-License-Identifier: Apache-2.0
// gemm / widened
//
// Idea     the rungs for short sides read f32 in place. bf16 and f16 operands are widened, a block
//          at a time, into buffers that stay in L2, and gemm in f32, which selects among those
//          rungs, multiplies each pair of blocks. Sums are rounded to C's type once, while they are
//          in L2.
// Changes  against packed_simd: operands are widened in their own order, along the contiguous axis,
//          instead of into panels; sums stay in L2 instead of a buffer of megabytes.
// Cost     each element of A and B is widened once per block of the other side, at 0.06 ns each;
//          rounding a sum takes 0.08 ns.
// Limits   bf16 and f16 operands, contiguous in one direction; packed kernels are faster for large
//          products. Peers with bf16 instructions stay ahead: 0.3 to 0.7 of oneDNN.
// Source   measured here.
#include <optional>

#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/facts.hpp"

namespace rung::gemm_cpu {
namespace {

constexpr std::int64_t block_elements = 1 << 16;  // of A, B or sums: 256 KiB each

/// Context of the f32 products of blocks: separate from the caller's, so that it remembers its own
/// choice and has its own workspace.
struct Inner {
  std::optional<Context> context;
};

struct Blocks {
  std::int64_t m, n, k;  // of a block of the product
  bool staged;           // sums accumulate in a buffer instead of C
};

/// Returns the size of equal parts of `count`, each at most `most`.
std::int64_t even_part(std::int64_t count, std::int64_t most) {
  return count <= most ? count : ceil_div(count, ceil_div(count, most));
}

/// Returns whether the copy of an operand is contiguous along its second axis (columns) instead of
/// its first (rows).
bool along_columns(const Operand& x, std::int64_t rows, std::int64_t columns) {
  return x.column == 1 && (x.row != 1 || columns >= rows);
}

Blocks blocks_of(const RowMajorProduct& call) {
  // The longest k that leaves room for 16 rows and columns, so that accumulators are updated
  // rarely; 256 where rows or columns are contiguous, so that whole lines are copied.
  constexpr std::int64_t side = 16, long_side = 256;
  const bool a_along = along_columns(call.a, call.m, call.k);
  const bool b_along = along_columns(call.b, call.k, call.n);
  const std::int64_t room = std::max(std::min(call.m, a_along ? side : long_side),
                                     std::min(call.n, b_along ? long_side : side));
  const std::int64_t k = even_part(call.k, block_elements / room);
  const std::int64_t n = even_part(call.n, std::max<std::int64_t>(1, block_elements / k));
  // C accumulates the sums itself if it is direct and k is in one piece.
  const bool staged = !call.direct() || k < call.k;
  const std::int64_t rows = block_elements / (staged ? std::max(n, k) : k);
  return {even_part(call.m, std::max<std::int64_t>(1, rows)), n, k, staged};
}

/// Widened block of an operand, in f32.
struct Widened {
  float* data;
  bool along_columns;
  std::int64_t rows = 0, columns = 0, pitch = 0;

  void copy(const RowMajorProduct& call, const Operand& x, std::int64_t batch, std::int64_t row,
            std::int64_t column) {
    const std::int64_t run = along_columns ? columns : rows;
    const std::int64_t runs = along_columns ? rows : columns;
    const std::int64_t step = along_columns ? x.row : x.column;
    const void* from = at(x, call.in, batch, row, column);
    const CopyFunction<float>* copy = kernels<float>().copy[static_cast<int>(call.in)];
    if (step == run) {  // the block is one contiguous run
      pitch = run;
      copy(from, 0, 1, run * runs, data, 0);
    } else {
      pitch = copied_row<float>(run);
      copy(from, step, runs, run, data, pitch);
    }
  }
  [[nodiscard]] ConstTensorRef tensor() const {
    const Extents strides = along_columns ? Extents{pitch, 1} : Extents{1, pitch};
    return {static_cast<const float*>(data), Extents{rows, columns}, strides};
  }
  /// Returns the elements of a widened block of `rows` x `columns`.
  [[nodiscard]] static std::int64_t size(bool along_columns, std::int64_t rows,
                                         std::int64_t columns) {
    return along_columns ? rows * copied_row<float>(columns) : columns * copied_row<float>(rows);
  }
};

void widened(const RowMajorProduct& call, Context& context) {
  auto& inner = context.memo<Inner>().context;
  if (!inner || inner->threads() != context.threads()) inner = Context::cpu(context.threads());
  inner->set_choice(context.choice());
  inner->set_tuning(Tuning::off);
  const Blocks block = blocks_of(call);
  const bool a_along = along_columns(call.a, call.m, call.k);
  const bool b_along = along_columns(call.b, call.k, call.n);
  const std::int64_t a_size = Widened::size(a_along, block.m, block.k);
  const std::int64_t b_size = Widened::size(b_along, block.k, block.n);
  const std::int64_t sums_row = copied_row<float>(block.n);
  const std::int64_t sums_size = block.staged ? block.m * sums_row : 0;
  auto* workspace =
      static_cast<float*>(context.workspace((a_size + b_size + sums_size) * sizeof(float)));
  Widened a{workspace, a_along};
  Widened b{workspace + a_size, b_along};

  for (std::int64_t batch = 0; batch < call.batch; ++batch) {
    const Kernels<float>& ks = kernels<float>();
    Sums<float> sums =
        block.staged ? Sums<float>{call, ks, batch, true, workspace + a_size + b_size, sums_row}
                     : make_sums<float>(call, ks, batch, nullptr, 0);
    std::int64_t b_at = -1;  // the block of B that is widened now
    for (std::int64_t j = 0; j < call.n; j += block.n) {
      for (std::int64_t i = 0; i < call.m; i += block.m) {
        a.rows = std::min(block.m, call.m - i);
        b.columns = std::min(block.n, call.n - j);
        if (block.staged) sums.i0 = i, sums.j0 = j;
        for (std::int64_t p = 0; p < call.k; p += block.k) {
          a.columns = b.rows = std::min(block.k, call.k - p);
          a.copy(call, call.a, batch, i, p);
          if (b_at != j * call.k + p) {
            b.copy(call, call.b, batch, p, j);
            b_at = j * call.k + p;
          }
          const TensorRef c(sums.at(i, j), Extents{a.rows, b.columns}, Extents{sums.row, 1});
          gemm(*inner, a.tensor(), b.tensor(), c, {.alpha = call.alpha, .beta = sums.beta(p == 0)});
        }
        sums.finish(i, a.rows, j, b.columns);
      }
    }
  }
}

Support supports(const Gemm::Args& args, const Context&) {
  if (args.c.empty()) return unsupported("C is empty");
  if (args.a.dtype != DType::bf16 && args.a.dtype != DType::f16) {
    return unsupported("takes bf16 and f16 operands");
  }
  const RowMajorProduct call = row_major_product(args);
  if (call.depth() == 0) return unsupported("k or alpha is 0");
  if ((call.a.row != 1 && call.a.column != 1) || (call.b.row != 1 && call.b.column != 1)) {
    return unsupported("an operand is contiguous in neither direction");
  }
  return supported;
}

/// Returns the work of the f32 rung that a block's product calls.
Work product_work(const RowMajorProduct& call, const Blocks& block, const Context& context) {
  const auto matrix = [](const Operand& x, std::int64_t rows, std::int64_t columns) {
    const bool along = along_columns(x, rows, columns);
    ConstTensorRef t;
    t.dtype = DType::f32;
    t.shape = {1, rows, columns};
    t.strides =
        along ? Extents{0, copied_row<float>(columns), 1} : Extents{0, 1, copied_row<float>(rows)};
    return t;
  };
  Gemm::Args args;
  args.a = matrix(call.a, block.m, block.k);
  args.b = matrix(call.b, block.k, block.n);
  args.c.dtype = DType::f32;
  args.c.shape = {1, block.m, block.n};
  args.c.strides = {0, block.staged ? copied_row<float>(block.n) : call.c.row, 1};
  const Rung<Gemm>& rung = choose<Gemm>(args, context);
  Work work = rung.work(args, context);
  work.path = rung.info.name;
  return work;
}

Work work(const Gemm::Args& args, const Context& context) {
  const RowMajorProduct call = row_major_product(args);
  const Blocks block = blocks_of(call);
  const double by_m = static_cast<double>(ceil_div(call.m, block.m));
  const double by_n = static_cast<double>(ceil_div(call.n, block.n));
  const double by_k = static_cast<double>(ceil_div(call.k, block.k));
  const double blocks = static_cast<double>(call.batch) * by_m * by_n * by_k;
  Work work = product_work(call, block, context);
  // Each block is widened and its sums are finished; B is widened once for all rows if k is in one
  // piece.
  const double a = static_cast<double>(block.m * block.k);
  const double b = static_cast<double>(block.k * block.n) / (by_k == 1 ? by_m : 1);
  const double c = block.staged ? static_cast<double>(block.m * block.n) / by_k : 0;
  work.bytes = blocks * (work.bytes + (a + b + c) * (sizeof(float) + sizeof(f16)));
  // Copies and epilogue run on one thread.
  work.operations =
      work.operations * blocks + vector_operations(finish_fmas(call, false)) * double{work.threads};
  work.steps = work.blocks * (1 + work.steps) + (a + b + c) * work.threads;
  work.blocks = blocks;
  // Operands are widened again per block of the other side.
  if (by_k > 1 && by_m * by_n > 1) work.path = "again";
  work.launches = 1;
  return work;
}

void run(const Gemm::Args& args, Context& context) { widened(row_major_product(args), context); }

const Rung<Gemm> self{
    {.name = "widened", .after = "dots", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung::gemm_cpu
