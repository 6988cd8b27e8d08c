// SPDX-License-Identifier: Apache-2.0
// Functions that return a report while the program still runs, for host programs that report each
// launch, such as the worker of the Python package (python/rung/cuda/worker.cpp).
#include <string>

#include "rung/emulate/runtime/advise.hpp"
#include "rung/emulate/runtime/api.hpp"
#include "rung/emulate/runtime/repetition.hpp"
#include "rung/simt/record.hpp"

#define RUNG_EXPORTED extern "C" __attribute__((visibility("default")))

/// Returns a JSON object with the findings and kernel counters since the last call or the program's
/// start; valid until the next call. "partly_recorded" covers the program from its start.
/// `counters`: enables counters from now on.
RUNG_EXPORTED const char* rung_emulate_take_report(int counters) {
  static std::string text;
  rung::cuda::hand_over_findings();
  rung::simt::record::Report report = rung::simt::record::take(counters != 0);
  rung::cuda::advise(report.findings);
  rung::cuda::shorten_repeated(report.findings);
  report.partly_recorded = rung::cuda::partly_recorded();
  text = rung::simt::record::to_json(report);
  return text.c_str();
}

/// Selects the launches that are checked from now on, in the syntax of `rung emulate --checks`.
RUNG_EXPORTED void rung_emulate_set_checks(const char* launches) {
  rung::cuda::set_recorded_launches(launches);
}

/// Allows launches after a failed launch. Unlike on a GPU, memory retains its contents.
RUNG_EXPORTED void rung_emulate_recover() {
  rung::cuda::set_device_failure(cudaSuccess);
  cudaGetLastError();
}
