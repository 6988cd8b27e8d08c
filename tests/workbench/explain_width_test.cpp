// SPDX-License-Identifier: Apache-2.0
// rung explain on narrow terminals: nothing is wider, and what is left out is named.
#include <gtest/gtest.h>

#include <cstdlib>

#include "fake_operator.hpp"

namespace rung::test {
namespace {

TEST(ExplainWidth, NarrowTerminalsAreKeptToAndColumnsLeftOutAreNamed) {
  if (!available(Backend::simt)) GTEST_SKIP() << "this build has no simulated GPU";
  for (const char* columns : {"60", "80", "100"}) {
    setenv("COLUMNS", columns, 1);
    const Outcome one = run_rung({"explain", "gemm/shared_tile", "f32 16x16x16"});
    EXPECT_EQ(one.code, 0) << one.err;
    expect_fits_the_page(one.out);
    const Outcome ladder = run_rung({"explain", "gemm", "f32 16x16x16"});
    EXPECT_EQ(ladder.code, 0) << ladder.err;
    for (const char* title : {"lanes", "at best", "barriers", "declared"}) {
      const std::size_t header = ladder.out.find("\nrung ");
      const std::string titles =
          ladder.out.substr(header, ladder.out.find('\n', header + 1) - header);
      const bool is_shown = titles.find(title) != std::string::npos;
      const std::size_t note = ladder.out.find("no room for: ");
      const std::string named = note == std::string::npos
                                    ? ""
                                    : ladder.out.substr(note, ladder.out.find('\n', note) - note);
      EXPECT_NE(is_shown, named.find(title) != std::string::npos) << columns << title << ladder.out;
    }
  }
  unsetenv("COLUMNS");
}

}  // namespace
}  // namespace rung::test
