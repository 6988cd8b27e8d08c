// SPDX-License-Identifier: Apache-2.0
// Effects of the terminal: the layout of tables at several widths, color, and line breaks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "fake_operator.hpp"
#include "rung/workbench/table.hpp"

namespace rung::test {
namespace {

using workbench::Table;
using Fit = workbench::Table::Fit;

/// Sets an environment variable, or unsets it if `value` is null; restores it at the end of the
/// scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    widest = std::max(widest, workbench::shown_width(line));
  }
  return widest;
}

Table rungs() {
  Table table({{"step", true},
               {"rung", false, Fit::cut},
               {"file", false, Fit::drop},
               {"time", true},
               {"spread", true, Fit::drop},
               {"note"}});
  const std::string long_note =
      "too slow to wait for, about 12 s a call, and this goes on far beyond the end of a line";
  table.add({"10", "naive", "cpu_10_naive.cpp", "12.3 ms", "1 %", long_note});
  table.add(
      {"20", "registers_single_read_and_more", "cpu_20_registers.cpp", "1.2 ms", "2 %", "ok"});
  table.add({"30", "threads", "cpu_30_threads.cpp", "0.2 ms", "3 %", long_note});
  return table;
}

TEST(Table, IsNoWiderThanTheTerminal) {
  for (const std::size_t width : {40, 50, 60, 72, 80, 100, 132, 200}) {
    EXPECT_LE(widest_line(rungs().text(width)), width) << rungs().text(width);
  }
  Table table({{"name"}, {"a long title"}});
  table.add({std::string(30, 'n'), std::string(50, 'x')});
  for (std::size_t width = 30; width < 90; ++width) {
    EXPECT_EQ(table.text(width).find("[1] a long"), std::string::npos) << "a title is no remark";
  }
}

TEST(Table, RemarksThatDoNotFitAreFootnotesOnceEach) {
  const std::string text = rungs().text(100);
  EXPECT_NE(text.find("1 %  [1]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("3 %  [1]\n"), std::string::npos) << "the same remark, the same number";
  EXPECT_NE(text.find("2 %  ok\n"), std::string::npos) << "a short one stays in its line";
  EXPECT_NE(text.find("\n[1] too slow"), std::string::npos) << text;
  EXPECT_EQ(text.find("[2]"), std::string::npos) << text;
  EXPECT_EQ(rungs().text(200).find("[1]"), std::string::npos) << "here all of them fit";
}

TEST(Table, ColumnsAreLeftOutFromTheRightThenCellsAreCut) {
  const std::string narrow = rungs().text(80);
  EXPECT_EQ(narrow.find("spread "), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("file"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("no room for: spread\n"), std::string::npos) << narrow;
  const std::string narrower = rungs().text(40);
  EXPECT_NE(narrower.find("no room for: file, spread"), std::string::npos) << narrower;
  EXPECT_NE(narrower.find("registers_single..."), std::string::npos) << narrower;
  EXPECT_NE(narrower.find("12.3 ms"), std::string::npos) << "the figures are never cut";
}

TEST(Table, AYieldingColumnIsCutFirstAndGoesBeforeOthersAreCut) {
  Table table({{"operator"}, {"what it computes", false, Fit::cut}, {"peers", false, Fit::yield}});
  table.add({"gemm", "the product of two matrices", "openblas, blis, mkl, eigen"});
  const std::size_t all = widest_line(table.text(200));
  const std::string narrower = table.text(all - 5);
  EXPECT_NE(narrower.find("two matrices"), std::string::npos) << narrower;
  EXPECT_NE(narrower.find("blis, mk..."), std::string::npos) << narrower;
  EXPECT_FALSE(table.shows("peers", 45));
  EXPECT_NE(table.text(45).find("two matrices"), std::string::npos) << table.text(45);
  EXPECT_NE(table.text(45).find("no room for: peers"), std::string::npos) << table.text(45);
  EXPECT_NE(table.text(30).find("the product of tw..."), std::string::npos) << table.text(30);
}

// If not even the figures fit, columns are dropped from the right, and named below the table.
TEST(Table, OfManyFiguresFitsFortyColumns) {
  Table table({{"threads", true},
               {"blocks", true},
               {"warps", true},
               {"occupancy", true},
               {"registers", true},
               {"limited by", false, Fit::drop}});
  table.add({"1,024", "2", "64", "100 %", "65,536", "warps, registers"});
  const std::string text = table.text(40);
  EXPECT_LE(widest_line(text), 40u) << text;
  EXPECT_NE(text.find("no room for: registers, limited by"), std::string::npos) << text;
  Table one({{"name"}});
  one.add({std::string(60, 'n')});
  EXPECT_LE(widest_line(one.text(40)), 40u) << one.text(40);
}

TEST(Table, AColumnThatIsCutMakesRoomForOneThatYields) {
  Table table({{"operator"}, {"what it computes", false, Fit::cut}, {"peers", false, Fit::yield}});
  table.add({"gemm", "C = act(alpha op(A) op(B) + beta C + bias) + residual", "blis, onednn"});
  EXPECT_NE(table.text(60).find("blis, onednn"), std::string::npos) << table.text(60);
  EXPECT_NE(table.text(60).find("C = act(alpha op(A) op(B)"), std::string::npos) << table.text(60);
}

TEST(Table, AMessageOfSeveralLinesBecomesOne) {
  EXPECT_EQ(workbench::one_line("no rung:\n  a: x\n\n  b: y"), "no rung: a: x; b: y");
  EXPECT_EQ(workbench::one_line("one"), "one");
}

TEST(Table, TellsWhichColumnsItShows) {
  EXPECT_TRUE(rungs().shows("spread", 200));
  EXPECT_FALSE(rungs().shows("spread", 80)) << "no room";
  EXPECT_FALSE(rungs().shows("rate", 200)) << "there is none";
  Table table({{"rung"}, {"vs peer", true}});
  table.add({"naive"});
  EXPECT_FALSE(table.shows("vs peer", 200)) << "empty in every row";
}

TEST(Table, OneIsNoPlural) {
  EXPECT_EQ(workbench::count_of(1, "operator"), "1 operator");
  EXPECT_EQ(workbench::count_of(0, "operator"), "0 operators");
  EXPECT_EQ(workbench::count_of(21, "operator"), "21 operators");
  EXPECT_EQ(workbench::count_of(2, "launch"), "2 launches");
  EXPECT_EQ(workbench::count_of("1,024", "byte"), "1,024 bytes");
  EXPECT_EQ(workbench::count_of("1", "byte"), "1 byte");
}

TEST(Table, CountsCharactersNotBytesAndCutsBetweenThem) {
  EXPECT_EQ(workbench::shown_width("\xc3\xa4"
                                   "b"),
            2u);
  EXPECT_EQ(workbench::cut("\xc3\xa4\xc3\xb6\xc3\xbcxyz", 5), "\xc3\xa4\xc3\xb6...");
  EXPECT_EQ(workbench::cut("abcdef", 6), "abcdef");
  EXPECT_EQ(workbench::cut("ab cdefgh", 6), "ab...") << "no blank before the dots";
}

TEST(Terminal, ColumnsDecideElseAPage) {
  {
    const Variable columns("COLUMNS", "72");
    EXPECT_EQ(workbench::terminal_width(), 72u);
    EXPECT_EQ(workbench::text_width(), 72u);
  }
  {
    const Variable columns("COLUMNS", "200");
    EXPECT_EQ(workbench::terminal_width(), 200u);
    EXPECT_EQ(workbench::text_width(), 100u) << "sentences are not spread over the screen";
  }
  {
    const Variable columns("COLUMNS", "3");
    EXPECT_EQ(workbench::terminal_width(), 40u);
  }
  testing::internal::CaptureStdout();  // standard output is then a file
  for (const char* nonsense : {"wide", "0", "-80", "80x24"}) {
    const Variable columns("COLUMNS", nonsense);
    EXPECT_EQ(workbench::terminal_width(), workbench::page_width) << nonsense;
  }
  testing::internal::GetCapturedStdout();
}

TEST(Terminal, HelpAndTablesOfEveryCommandFit) {
  // Commands that users copy stay on one line.
  const auto widest_sentence = [](const std::string& text) {
    std::size_t most = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  rung ") && !line.starts_with("  <"))
        most = std::max(most, line.size());
    }
    return most;
  };
  for (const char* width : {"40", "60", "80", "200"}) {
    const Variable columns("COLUMNS", width);
    for (const char* command :
         {"list",    "check", "bench",      "machine", "run",      "report",     "occupancy",
          "amdahl",  "help",  "completion", "reuse",   "roofline", "waves",      "littles-law",
          "mixture", "work",  "conv-shape", "burst",   "pcie",     "divergence", "crossover"}) {
      const Outcome help = run_rung({command, "--help"});
      EXPECT_EQ(help.code, 0);
      EXPECT_LE(widest_sentence(help.out), std::strtoul(width, nullptr, 10)) << help.out;
      for (const char* part : {"Usage:", "Options:", "Examples:", "Exit codes:", "--color"}) {
        EXPECT_NE(help.out.find(part), std::string::npos) << command << " lacks " << part;
      }
    }
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"list"},
          {"list", "fake"},
          {"list", "--backend", "cpu"},
          {"check", "fake/right", "--backend", "cpu"},
          {"check", "fake/columns", "--problem", "f32 4x4", "--backend", "cpu"},
          {"occupancy"},
          {"occupancy", "--threads", "32"},
          {"amdahl", "0.9"},
          {"amdahl", "0.9", "8"},
          {"work", "tree,brent-kung", "--n", "16,1000"},
          {"roofline", "--reuse", "32", "--bandwidth", "696GB/s", "--peak", "37TFLOP/s"},
          {"survey", "fake", "--list", "--count", "2"},
          {"waves", "--grid", "900", "--blocks-per-sm", "2"},
          {"pcie", "--lanes", "1,2,4"}}) {
      const Outcome outcome = run_rung(words);
      EXPECT_LE(widest_sentence(outcome.out), std::strtoul(width, nullptr, 10)) << outcome.out;
    }
  }
}

TEST(Terminal, NarrowListsKeepWhatOperatorsCompute) {
  const auto at = [](const char* width) {
    const Variable columns("COLUMNS", width);
    return run_rung({"list"}).out;
  };
  EXPECT_NE(at("200").find("peers here"), std::string::npos) << at("200");
  EXPECT_NE(at("100").find("peers here"), std::string::npos) << at("100");
  const std::string narrow = at("60");
  EXPECT_NE(narrow.find("no room for: peers here\n"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("y = 2 x"), std::string::npos) << narrow;
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) {
    // Still readable: 60 columns minus the names and the four numbers.
    const std::size_t dots = line.find("...");
    if (dots != std::string::npos) {
      EXPECT_GE(dots, 25u) << line;
    }
  }
}

TEST(Terminal, ALegendExplainsNoColumnThatWasDropped) {
  const KnownMachine machine;
  const auto at = [](const char* width) {
    const Variable columns("COLUMNS", width);
    return run_rung({"bench", "fake", "f32 4x16", "--backend", "cpu", "--rungs",
                     "right,peer_two,best", "--pairs", "1", "--threads", "1"})
        .out;
  };
  const std::string wide = at("200");
  EXPECT_NE(wide.find("spread: (third quartile"), std::string::npos) << wide;
  EXPECT_NE(wide.find("each of 1 round."), std::string::npos) << wide;
  const std::string narrow = at("40");
  EXPECT_NE(narrow.find("no room for: "), std::string::npos) << narrow;
  EXPECT_EQ(narrow.find("spread: ("), std::string::npos) << narrow;
  EXPECT_EQ(narrow.find("threads: how"), std::string::npos) << narrow;
}

TEST(Color, OptionBeatsVariablesAndNoColorBeatsForceColor) {
  const auto colored = [](const std::vector<std::string>& words) {
    return run_rung(words).out.find("\033[") != std::string::npos;
  };
  const Variable none("NO_COLOR", nullptr);
  const Variable force("FORCE_COLOR", nullptr);
  EXPECT_FALSE(colored({"list"})) << "a pipe";
  EXPECT_TRUE(colored({"list", "--color=always"}));
  EXPECT_TRUE(colored({"--color", "always", "list"}));
  {
    const Variable forced("FORCE_COLOR", "1");
    EXPECT_TRUE(colored({"list"}));
    EXPECT_FALSE(colored({"list", "--color=never"}));
    const Variable forbidden("NO_COLOR", "1");
    EXPECT_FALSE(colored({"list"}));
    EXPECT_TRUE(colored({"list", "--color=always"}));
    const Variable empty("NO_COLOR", "");
    EXPECT_TRUE(colored({"list"})) << "NO_COLOR counts when it is not empty";
  }
  const Variable zero("FORCE_COLOR", "0");
  EXPECT_FALSE(colored({"list"}));
  const Outcome wrong = run_rung({"list", "--color=sometimes"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("auto, always, never"), std::string::npos) << wrong.err;
}

}  // namespace
}  // namespace rung::test
