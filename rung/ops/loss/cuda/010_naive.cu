// SPDX-License-Identifier: Apache-2.0
// loss / naive
//
// Idea     One thread per row computes its maximum, sum of exponentials, loss and gradient.
// Changes  baseline.
// Cost     x is read three times, uncoalesced: lanes of a warp are a row apart, so a load uses one
//          element of each 32-byte sector; later loads find the other elements only if the sector
//          is still in L1.
// Limits   Cross entropy of f32 in contiguous rows, without smoothing; few rows leave the GPU
//          underused, however long they are.
// Source   the definition.
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int rows_a_block = 128;

__global__ void __launch_bounds__(rows_a_block) loss_naive(Rows<4> rows, RowLoss<float> p) {
  auto& scratch = shared<Shared<float>>();
  const float factor = p.factor();
  double total = 0;
  for_each_row(rows.count(), [&](std::int64_t number, bool exists) {
    if (!exists) return;
    const Row<float> row(rows, p, number, exists);
    const float* x = p.x + row.at[Loss::row_x];
    float maximum = no_maximum<float>;
    for (std::int64_t c = 0; c < rows.length; ++c) maximum = fmaxf(maximum, x[c]);
    float sum = 0;
    for (std::int64_t c = 0; c < rows.length; ++c) sum += expf(x[c] - maximum);
    const float loss = row.works ? logf(sum) + (maximum - x[row.label]) : row.otherwise;
    total += static_cast<double>(loss);
    if (p.losses != nullptr) p.losses[row.at[Loss::row_losses]] = loss;
    if (p.dx == nullptr) return;
    float* dx = p.dx + row.at[Loss::row_dx];
    for (std::int64_t c = 0; c < rows.length; ++c) {
      const float probability = expf(x[c] - maximum) / sum;
      const float slope = c == row.label ? probability - 1 : probability;
      dx[c] = row.works ? slope * factor : row.otherwise;
    }
  });
  leave_sum(total, scratch.sums, p.sums);
}

Support supports(const Loss::Args& args, const Context&) {
  if (args.options.kind != LossKind::cross_entropy || args.options.smoothing != 0) {
    return unsupported("cross entropy without smoothing");
  }
  if (args.x.dtype != DType::f32) return unsupported("f32 only");
  return args.contiguous() ? supported : unsupported("the rows must be contiguous");
}

void run(const Loss::Args& args, Context& context) {
  run_rows(args, context,
           {.threads = 1, .rows = rows_a_block, .shared_bytes = sizeof(Shared<float>)}, loss_naive);
}

const Rung<Loss> self{{.name = "naive",
                       .step = 10,
                       .backend = device_backend,
                       .teaching = true,
                       .supports = supports,
                       .passes = {.loads = 3, .stores = 1},
                       .run = run}};

}  // namespace
}  // namespace rung
