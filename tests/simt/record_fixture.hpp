// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of recording: a recorded launch, and expectations of findings.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "rung/device/device.hpp"
#include "rung/simt/record.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung {

using simt::record::Finding;
using simt::record::Kernel;
using simt::record::Kind;
using simt::record::Report;
using simt::record::Space;

/// Runs f under a recording session, with one OS thread or two.
template <class F>
Report recorded(F run, simt::record::Options options = {}) {
  simt::record::begin(options);
  std::string failure;
  try {
    run();
  } catch (const Error& error) {
    failure = error.what();
  }
  Report report = simt::record::end();
  EXPECT_EQ(report.findings.empty() ? failure : "", "");
  return report;
}

/// Launches one kernel and returns the recorder's report.
template <class... Parameters, class... Arguments>
Report recorded_launch(const LaunchShape& shape, void (*kernel)(Parameters...),
                       Arguments&&... arguments) {
  return recorded([&] {
    Context context = Context::on(Backend::simt, 2);
    launch(context, shape, kernel, std::forward<Arguments>(arguments)...);
  });
}

inline std::string all_text(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings) text += to_text(finding) + "\n";
  return text;
}

inline void expect_clean(const Report& report) {
  EXPECT_TRUE(report.findings.empty()) << all_text(report);
}

/// Expects exactly one finding of this kind, at a line of this file (0: any).
inline void expect_finding(const Report& report, Kind kind, Space space, int line = 0) {
  for (const Finding& finding : report.findings) {
    if (finding.kind != kind || finding.space != space) continue;
    if (line != 0 && finding.line != line && finding.other_line != line) continue;
    EXPECT_NE(finding.file.find("tests/simt/"), std::string::npos) << finding.file;
    return;
  }
  ADD_FAILURE() << "no " << to_string(kind) << " in " << to_string(space) << " memory at line "
                << line << "; found:\n"
                << all_text(report);
}

}  // namespace rung
