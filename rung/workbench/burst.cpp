// SPDX-License-Identifier: Apache-2.0
// rung burst: the share that a strided access uses of the bytes that DRAM and caches transfer for
// it.
#include "rung/bench/burst.hpp"

#include "rung/workbench/calculator.hpp"

namespace rung::workbench {
namespace {

constexpr double sector = 32;

void compute(const Given& given, Sheet& sheet) {
  const bench::StridedAccess access{.threads = given["threads"],
                                    .element = given["element"],
                                    .stride = given["stride"],
                                    .offset = given["offset"]};
  const double used = access.used_bytes();
  const double bursts = access.lines(given["burst"]);
  const double moved = bursts * given["burst"];
  const double sectors = access.lines(sector);
  sheet.let("sector", sector, Unit::bytes, "32 bytes");
  sheet.result("used", access.stride == 0 ? "{element}" : "{threads} x {element}", used,
               Unit::bytes);
  sheet.result("bursts", "lines of that size that the elements touch", bursts, Unit::count);
  sheet.result("moved", "{bursts} x {burst}", moved, Unit::bytes);
  sheet.result("efficiency", "{used} / {moved}", used / moved);
  if (given.has("peak")) {
    sheet.result("effective bandwidth", "{efficiency} x {peak}", used / moved * given["peak"],
                 Unit::bytes_per_second);
  }
  sheet.result("sectors", "lines of 32 bytes that they touch", sectors, Unit::count);
  sheet.result("sector efficiency", "{used} / ({sectors} x {sector})", used / (sectors * sector));
  sheet.remark(
      "Bursts are what DRAM delivers, sectors what the GPU's caches do; a warp's request counts "
      "each of its sectors once.");
  sheet.counted_by({.op = "transpose",
                    .rung = "naive_read_coalesced",
                    .problem = "f32 64x64",
                    .remark = "stores 64 elements apart",
                    .figures = {{"sectors of a warp's store", counted::sectors_per_store}}});
}

CommandSpec::Action setup(Parser app) {
  app.purpose(
      "Computes which part of the bytes that memory delivers is used by threads that each load one "
      "element, a stride apart. DRAM delivers whole bursts, a GPU's L2 cache whole sectors of 32 "
      "bytes.");
  app.example("rung burst --burst 512 --element 8 --stride 2",
              "32 doubles, every other one, within one burst");
  app.example("rung burst --stride 1,2,4,8,16,32", "a line per stride");
  return Calculator(
             app, "burst",
             {{.name = "--burst", .unit = Unit::bytes, .help = "bytes per burst", .fallback = "64"},
              {.name = "--stride",
               .help = "elements from one thread's element to the next one's; 0: all load the same",
               .fallback = "1",
               .accepted = {.most = 1e9, .zero = true}},
              {.name = "--element",
               .unit = Unit::bytes,
               .help = "bytes per element",
               .fallback = "4",
               .accepted = {.least = 1, .most = 1 << 20}},
              {.name = "--threads",
               .help = "how many load an element each",
               .fallback = "32",
               .accepted = {.most = 1 << 20}},
              {.name = "--offset",
               .unit = Unit::bytes,
               .help = "from the start of a burst to the first element",
               .fallback = "0",
               .accepted = {.most = 1e9, .zero = true}},
              {.name = "--peak",
               .unit = Unit::bytes_per_second,
               .help = "the memory's bandwidth with every byte used",
               .optional = true}})
      .action(compute);
}

const Command self{{.name = "burst",
                    .order = 86,
                    .summary = "which part of what memory delivers a strided access uses",
                    .setup = setup}};

}  // namespace
}  // namespace rung::workbench
