// SPDX-License-Identifier: Apache-2.0
// Shared by loss's CUDA rungs: typed arguments, row state, and the blocks' partial sums and their
// reduction.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/thread.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/loss/op/loss.hpp"
#include "rung/ops/loss/op/terms.hpp"

namespace rung::loss_cuda::inline RUNG_TARGET {

// --- in kernels ----------------------------------------------------------------------------------

inline constexpr int max_count_blocks = 256;

/// Kernel arguments. All tensors are addressed through Rows<4>.
template <class T>
struct RowLoss {
  using Sum = Accumulator<T>;
  const T* x;
  T* dx;             // null: not requested
  const T* targets;  // null: rows have labels
  Sum* losses;       // null: not requested
  LossTerms<Sum> terms;
  LossLabels labels;
  std::int64_t rows;
  bool mean;
  const std::int64_t* counted;  // count_blocks partial counts; null: all rows count
  int count_blocks;
  double* sums;   // one per block: the sum of its rows' losses
  unsigned zero;  // argument of widen_again()

  /// Returns the factor of a row's gradient. All threads of a block must call it.
  [[nodiscard]] __device__ __forceinline__ Sum factor() const {
    if (!mean) return 1;
    std::int64_t count = rows;
    if (counted != nullptr) {
      const int lane = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x) % warp_size;
      count = 0;
      for (int block = lane; block < count_blocks; block += warp_size) count += counted[block];
      count = lanes_reduce(count, Plus{}, warp_size);
    }
    return count > 0 ? static_cast<Sum>(1.0 / static_cast<double>(count)) : Sum(1);
  }
};

/// Returns exp(z). ex2.approx adds a relative error of 2^-22, and its argument is rounded to half
/// an ulp.
__device__ __forceinline__ float power(float z) {
  return ptx::fast_exp2(z * 1.44269504088896340736F);
}
__device__ __forceinline__ double power(double z) { return exp(z); }
__device__ __forceinline__ float logarithm(float value) { return logf(value); }
__device__ __forceinline__ double logarithm(double value) { return log(value); }

/// Partial sums of a row: of exponentials, and of terms.
template <class Sum>
struct Parts {
  Sum powers;
  Sum terms;
};
struct AddParts {
  template <class Sum>
  __device__ __forceinline__ Parts<Sum> operator()(const Parts<Sum>& a, const Parts<Sum>& b) const {
    return {a.powers + b.powers, a.terms + b.terms};
  }
};

/// State of a row: offsets in the tensors, and the label.
template <class T>
struct Row {
  using Sum = Accumulator<T>;
  std::int64_t at[4] = {};
  std::int64_t label = -1;
  bool works = false;  // it exists, is not ignored, and has a valid label
  Sum otherwise = 0;   // its loss and gradient if not `works`

  __device__ __forceinline__ Row(const Rows<4>& rows, const RowLoss<T>& p, std::int64_t row,
                                 bool exists) {
    if (!exists) return;
    rows.offsets(row, at);
    works = true;
    if (p.targets != nullptr) return;
    label = p.labels.at(at[Loss::row_target]);
    if (!p.labels.counts(label)) {
      works = false;
    } else if (p.labels.is_wrong(label)) {
      works = false;
      otherwise = std::numeric_limits<Sum>::quiet_NaN();
    }
  }
  [[nodiscard]] __device__ __forceinline__ Sum target(const RowLoss<T>& p, std::int64_t c,
                                                      std::int64_t step) const {
    if (p.targets != nullptr) return convert<Sum>(p.targets[at[Loss::row_target] + c * step]);
    return c == label ? Sum(1) : Sum(0);
  }
  /// Returns the loss of a row that works, from its sums.
  [[nodiscard]] static __device__ __forceinline__ Sum loss_of(const RowLoss<T>& p,
                                                              const Parts<Sum>& parts) {
    return p.terms.has_maximum() ? parts.terms + logarithm(parts.powers) : parts.terms;
  }
};

/// Exchange buffer of a block's threads.
template <class Sum>
struct Shared {
  RowScratch<Sum> maxima;
  RowScratch<Parts<Sum>> parts;
  double sums[32];
};

/// Stores the sum over the block's threads, added in a fixed order, in sums[block].
__device__ __forceinline__ void leave_sum(double mine, double (&scratch)[32], double* sums) {
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  const int warps = static_cast<int>(blockDim.x * blockDim.y) / warp_size;
  mine = lanes_reduce(mine, Plus{}, warp_size);
  if (thread % warp_size == 0) scratch[thread / warp_size] = mine;
  __syncthreads();
  if (thread != 0) return;
  double all = 0;
  for (int warp = 0; warp < warps; ++warp) all += scratch[warp];
  sums[blockIdx.x] = all;
}

/// Calls f(c) for this thread's classes of a row with any strides.
template <class T, class F>
__device__ __forceinline__ void for_each_class(const Row<T>& row, const Rows<4>& rows, F&& f) {
  if (!row.works) return;
  for (std::int64_t c = threadIdx.x; c < rows.length; c += blockDim.x) f(c);
}

/// Runs the last pass over such a row: stores its gradient and, by the row's first thread, its
/// loss.
template <class T>
__device__ __forceinline__ void write_row(const Row<T>& row, const Rows<4>& rows,
                                          const RowLoss<T>& p, bool exists, Accumulator<T> maximum,
                                          const Parts<Accumulator<T>>& parts, Accumulator<T> factor,
                                          double& total) {
  using Sum = Accumulator<T>;
  if (!exists) return;
  if (threadIdx.x == 0) {
    const Sum loss = row.works ? Row<T>::loss_of(p, parts) : row.otherwise;
    if (p.losses != nullptr) p.losses[row.at[Loss::row_losses]] = loss;
    total += static_cast<double>(loss);
  }
  if (p.dx == nullptr) return;
  const Sum inverse = 1 / parts.powers;
  const T* x = p.x + row.at[Loss::row_x];
  T* dx = p.dx + row.at[Loss::row_dx];
  for (std::int64_t c = threadIdx.x; c < rows.length; c += blockDim.x) {
    Sum slope = row.otherwise;
    if (row.works) {
      const Sum value = convert<Sum>(x[c * rows.steps[Loss::row_x]]);
      const Sum probability = p.terms.has_maximum() ? power(value - maximum) * inverse : Sum(0);
      slope = p.terms.slope(value, row.target(p, c, rows.steps[Loss::row_target]), probability) *
              factor;
    }
    dx[c * rows.steps[Loss::row_dx]] = convert<T>(slope);
  }
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the largest grid: enough blocks for every SM, few enough that one block adds up their
/// sums.
inline std::int64_t max_blocks(const Context& context) {
  return 16 * std::int64_t{context.info().sms};
}

/// Launches the count of rows that are not ignored, one partial count per block; returns the number
/// of blocks. Defined in finish.cu.
int launch_count(const Loss::Args& args, Context& context, std::int64_t* counted);
/// Launches the kernel that adds up `blocks` sums and writes the result.
void launch_result(const Loss::Args& args, Context& context, const double* sums,
                   std::int64_t blocks, const std::int64_t* counted, int count_blocks);

/// Counts the rows if needed, calls launch_p(p), which launches a kernel of `blocks` blocks, and
/// adds up p.sums. In the workspace, `more` bytes for the kernel follow the blocks + 1 sums.
template <class T, class Launch>
void run_blocks(const Loss::Args& args, Context& context, std::int64_t blocks, Launch&& launch_p,
                std::size_t more = 0) {
  using Sum = Accumulator<T>;
  const auto count_bytes = static_cast<std::size_t>(max_count_blocks) * sizeof(std::int64_t);
  auto* memory = static_cast<unsigned char*>(context.workspace(
      count_bytes + static_cast<std::size_t>(blocks + 1) * sizeof(double) + more));
  auto* counted = reinterpret_cast<std::int64_t*>(memory);
  auto* sums = reinterpret_cast<double*>(memory + count_bytes);
  int count_blocks = 0;
  if (args.ignores()) count_blocks = launch_count(args, context, counted);
  if (!args.ignores()) counted = nullptr;
  RowLoss<T> p{};
  p.x = static_cast<const T*>(args.x.data);
  p.dx = static_cast<T*>(args.options.dx.data);
  p.targets = args.labeled() ? nullptr : static_cast<const T*>(args.target.data);
  p.losses = static_cast<Sum*>(args.options.losses.data);
  p.terms = LossTerms<Sum>::of(args);
  p.labels = LossLabels::of(args);
  p.rows = args.count();
  p.mean = args.options.reduction == LossReduction::mean;
  p.counted = counted;
  p.count_blocks = count_blocks;
  p.sums = sums;
  launch_p(p);
  launch_result(args, context, sums, blocks, counted, count_blocks);
}

/// Launches kernel(rows, p, more...) in `blocks` blocks, each of which loops over rows, and adds up
/// the results.
template <class T, class... More>
void run_rows(const Loss::Args& args, Context& context, const RowBlock& block, std::int64_t blocks,
              void (*kernel)(Rows<4>, RowLoss<T>, More...), More... more) {
  run_blocks<T>(args, context, blocks, [&](const RowLoss<T>& p) {
    launch(
        context,
        {.grid = blocks, .block = {block.threads, block.rows}, .shared_bytes = block.shared_bytes},
        kernel, args.rows, p, more...);
  });
}
template <class T>
void run_rows(const Loss::Args& args, Context& context, const RowBlock& block,
              void (*kernel)(Rows<4>, RowLoss<T>)) {
  run_rows(args, context, block,
           smaller(max_blocks(context), (args.count() + block.rows - 1) / block.rows), kernel);
}

/// Adds the launches of run_blocks() to a kernel's work for the time model: the count of labels, if
/// needed, and the final sum.
inline Work with_result(const Loss::Args& args, const Work& work) {
  return in_launches(work.launches + (args.ignores() ? 2 : 1), work);
}

/// Calls f<kind>() with the kind as a compile-time constant.
template <class F>
void with_kind(const Loss::Args& args, F&& f) {
  switch (args.options.kind) {
    case LossKind::cross_entropy:
      return f.template operator()<LossKind::cross_entropy>();
    case LossKind::hinge:
      return f.template operator()<LossKind::hinge>();
    case LossKind::squared:
      return f.template operator()<LossKind::squared>();
  }
}

}  // namespace rung::loss_cuda::inline RUNG_TARGET
