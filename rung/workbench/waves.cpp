// SPDX-License-Identifier: Apache-2.0
// rung waves: wave quantization and the tail effect of a grid.
#include "rung/bench/waves.hpp"

#include <fmt/format.h>

#include "rung/bench/data_sheets.hpp"
#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

/// Returns the number of SMs. Without --sms, takes it from the GPU and adds it to the page's
/// inputs.
double multiprocessors(const Given& given, Sheet& sheet) {
  constexpr double of_an_h100 = 132;
  if (given.has("sms") && given.has("gpu")) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("--sms: given with --gpu {}; accepted: one of the two", given.word("gpu")));
  }
  if (given.has("sms")) return given["sms"];
  double count = of_an_h100;
  if (given.has("gpu")) count = bench::published_gpu(given.word("gpu"))->multiprocessors;
  sheet.input("sms", "", format_quantity(count, Unit::count), count);
  return count;
}

void compute(const Given& given, Sheet& sheet) {
  double blocks = 1;
  for (const double extent : given.shape("grid")) blocks *= extent;
  const bench::Waves waves =
      bench::waves_of(blocks, given["blocks-per-sm"], multiprocessors(given, sheet));
  sheet.let("blocks", blocks, Unit::count, "grid");
  sheet.result("blocks at once", "{blocks-per-sm} x {sms}", waves.capacity, Unit::count);
  sheet.result("waves", "{blocks} / {blocks at once}", waves.waves);
  sheet.result("rounds", "waves, rounded up", waves.rounds, Unit::count);
  sheet.let("full", waves.rounds - 1, Unit::count, "(rounds - 1)");
  sheet.result("last wave", "{blocks} - {full} x {blocks at once}", waves.last_wave, Unit::count);
  sheet.result("last wave in use", "{last wave} / {blocks at once}", waves.last_wave_used(),
               Unit::part);
  sheet.result("efficiency", "{waves} / {rounds}", waves.efficiency(), Unit::part);
  sheet.result("blocks that wait", "grid - blocks at once, or none", waves.waiting, Unit::count);
  sheet.remark(
      "A bound for blocks that last equally long: blocks of different lengths even the last wave "
      "out. `rung occupancy` computes the blocks per SM.");
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes in how many waves the blocks of a grid run, and how full the last wave is. A grid "
      "whose last wave holds few blocks wastes most of the GPU for as long as one block takes "
      "(wave quantization, the tail effect).");
  app.example("rung waves --grid 900 --blocks-per-sm 2 --sms 132", "on an H100");
  app.example("rung waves --grid 256,264,265 --blocks-per-sm 2", "one block more, one wave more");
  app.example("rung waves --grid 900 --blocks-per-sm 2 --gpu h100,a100,rtx4090", "a line per GPU");
  return Calculator(app, "waves",
                    {{.name = "--grid",
                      .help = "blocks, as in 900 or 30x30",
                      .kind = InputKind::shape,
                      .extents = {1, 2, 3}},
                     {.name = "--blocks-per-sm",
                      .help = "blocks that an SM holds at once",
                      .accepted = {.most = 1e6}},
                     {.name = "--sms",
                      .help = "SMs of the GPU; default: 132",
                      .optional = true,
                      .accepted = {.most = 1e6}},
                     {.name = "--gpu",
                      .help = "whose SMs, in place of --sms",
                      .optional = true,
                      .kind = InputKind::word,
                      .words = bench::published_gpu_keys()}})
      .action(compute);
}

const Command self{{.name = "waves",
                    .order = 81,
                    .summary = "in how many waves a grid runs, and how full the last is",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
