// SPDX-License-Identifier: Apache-2.0
// rung run, the program itself: files in, a file out, and no output file after an error.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "run_on_files.hpp"

namespace rung::test {
namespace {

namespace fs = std::filesystem;

struct Refusal {
  const char* op;
  const char* problem;
  int code;
  const char* says;
};

/// Expects that these commands reject each problem before anything is measured or stored.
void expect_refused(std::initializer_list<const char*> commands,
                    std::initializer_list<Refusal> refusals) {
  char cache[] = "/tmp/rung-refused-XXXXXX";
  ASSERT_NE(mkdtemp(cache), nullptr);
  for (const char* command : commands) {
    for (const auto& [op, problem, code, says] : refusals) {
      const std::string before = std::string(command) == "check" ? " --problem" : "";
      const std::string words =
          std::string(command) + " --backend cpu " + op + before + " '" + problem + "'";
      const Ended ended =
          shell("XDG_CACHE_HOME=" + std::string(cache) + " timeout 60 " RUNG_BINARY " " + words);
      EXPECT_EQ(ended.code, code) << words << ": " << ended.said;
      EXPECT_NE(ended.said.find(says), std::string::npos) << words << ": " << ended.said;
      EXPECT_TRUE(fs::is_empty(cache)) << words << ": the machine was measured first";
    }
  }
  fs::remove_all(cache);
}

// The problem is invalid, or larger than the machine: no rung runs, and nothing counts as a
// failure.
TEST(CheckProblem, IsRefusedBeforeAnyRungRuns) {
  constexpr const char* counts = "; accepted: 0 to 2147483647";
  expect_refused({"check", "bench", "explain"},
                 {{"norm", "u8 64x64", 2, "x is u8; accepted: f32"},
                  {"histogram", "i32 24,low=5,bins=1", 2, "low < high"},
                  {"reduce", "f32 1099511627776", 3, "4096.0 GiB of memory"},
                  {"reduce", "f32 8x17,segments=3,offsets=f32", 2, "offsets is f32; accepted: i32"},
                  {"scan", "f32 8x17,segments=3,offsets=f64", 2, "offsets is f64; accepted: i32"},
                  {"reduce", "f32 8x17,segments=99999999999", 2, counts},
                  {"reduce", "f32 8x17,segments=-3", 2, counts},
                  {"scan", "f32 8x17,segments=99999999999", 2, counts},
                  {"scan", "f32 8x17,segments=-3", 2, counts},
                  {"histogram", "f32 99,bins=99999999999", 2, counts},
                  {"histogram", "f32 99,bins=-1", 2, counts},
                  {"gemm", "f32 3x4x5,batch=99999999999", 2, counts},
                  {"gemm", "f32 3x4x5,batch=-1", 2, counts},
                  // Converted to int, these would be 0.
                  {"softmax", "f32 3x4,axis=4294967296", 2, "accepted: -8 to 7"},
                  {"scan", "f32 3x4,axis=4294967296", 2, "accepted: -8 to 7"},
                  {"norm", "f32 3x4,axis=4294967296", 2, "accepted: -8 to 7"},
                  {"norm_backward", "f32 3x4,axes=4294967297", 2, "accepted: 1 to 8"},
                  {"scan", "i32 8,nan", 2, "nan: i32 has none"},
                  {"reduce", "u8 8,max,nan", 2, "nan: u8 has none"}});
}

TEST(CheckProblem, OfNothingLeavesNothingToTimeOrExplain) {
  expect_refused({"bench", "explain"}, {{"softmax", "f16 0", 2, "no element to write"},
                                        {"softmax", "f16 7x0", 2, "no element to write"},
                                        {"gemm", "f32 0x4x4", 2, "no element to write"},
                                        {"transpose", "u8 0x9", 2, "no element to write"}});
  const Ended checked = shell(RUNG_BINARY " check softmax --backend cpu --problem 'f16 0'");
  EXPECT_EQ(checked.code, 0) << checked.said;
}

// Estimated from smaller problems, whatever multiplies the work: iterations, batches, extents.
TEST(CheckProblem, TakingTooLongIsRefusedBeforeItBegins) {
  constexpr const char* accepted = "accepted: 600 s, or what --max-seconds says";
  expect_refused({"check"}, {{"stencil", "f32 64x64,mask=3x3,iterations=2147483647", 3, accepted},
                             {"gemm", "f32 8192x8192x8192", 3, accepted}});
  expect_refused({"bench"}, {{"stencil", "f32 64x64,mask=3x3,iterations=2147483647", 3,
                              "accepted: 3600 s, or what --max-seconds says"}});
  const auto check = [](const std::string& words) {
    return shell(RUNG_BINARY " check " + words).code;
  };
  const std::string many =
      "stencil/best --backend cpu --variant plain --problem "
      "'f32 32x32,mask=3x3,iterations=20000' --max-seconds ";
  EXPECT_EQ(check(many + "1"), 3);
  EXPECT_EQ(check(many + "1e6"), 0);
  EXPECT_EQ(check("gemm --backend cpu --problem 'e4m3 2147483x6x7' --max-seconds 1"), 3);
}

TEST(Output, CutShortByAFullDiskIsAFailureOfEveryCommand) {
  for (const std::string words :
       {"--help", "--version", "list", "list --json", "amdahl 0.9 4", "occupancy --json",
        "check transpose --backend cpu --problem 'f32 2x3'",
        "check transpose --backend cpu --problem 'f32 2x3' --json", "help check"}) {
    const Ended ended = shell("{ " RUNG_BINARY " " + words + " 2>&1 >/dev/full; }");
    EXPECT_EQ(ended.code, 1) << words;
    EXPECT_EQ(ended.said, "rung: standard output cannot be written: No space left on device\n")
        << words;
  }
}

TEST_F(RunGemm, MultipliesFilesWithOptions) {
  const Tensor a = save("a.npy", DType::f32, {4, 5});
  const Tensor b = save("b.npy", DType::f32, {5, 3});
  const Tensor c = save("c.npy", DType::f32, {4, 3});
  const Ended ended =
      run("a.npy b.npy -o out.npy --alpha -2 --beta 0.5 --c c.npy --activation relu --threads 1");
  ASSERT_EQ(ended.code, 0) << ended.said;
  const Tensor out = read_npy(folder + "/out.npy");
  ASSERT_EQ(out.shape(), (Extents{4, 3}));
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 3; ++j) {
      double sum = 0.5 * static_cast<double>(c.data<float>()[i * 3 + j]);
      for (int k = 0; k < 5; ++k) {
        sum -= 2.0 * static_cast<double>(a.data<float>()[i * 5 + k] * b.data<float>()[k * 3 + j]);
      }
      EXPECT_EQ(static_cast<double>(out.data<float>()[i * 3 + j]), sum > 0 ? sum : 0.0);
    }
  }
}

TEST_F(RunGemm, AFlagMayBeSwitchedOff) {
  save("a.npy", DType::f32, {4, 5});
  save("b.npy", DType::f32, {5, 3});
  // 4 x 5 transposed does not fit 5 x 3.
  EXPECT_EQ(run("a.npy b.npy -o out.npy --transpose-a").code, 2);
  const Ended off = run("a.npy b.npy -o out.npy --transpose-a=no");
  EXPECT_EQ(off.code, 0) << off.said;
}

TEST_F(RunGemm, NumPyAgrees) {
  if (shell("/usr/bin/python3 -c 'import numpy'").code != 0) {
    GTEST_SKIP() << "NumPy is not installed for /usr/bin/python3";
  }
  const std::string make =
      "cd " + folder +
      " && /usr/bin/python3 -c \"import numpy as n; r=n.random.default_rng(1);"
      " n.save('a.npy', n.asfortranarray(r.standard_normal((37, 65)).astype('f4')));"
      " n.save('b.npy', r.standard_normal((65, 29)).astype('f4'))\"";
  ASSERT_EQ(shell(make).code, 0);
  const Ended ended = run("a.npy b.npy -o c.npy");
  ASSERT_EQ(ended.code, 0) << ended.said;
  const Ended compared =
      shell("cd " + folder +
            " && /usr/bin/python3 -c \"import numpy as n; a, b, c = map(n.load, ('a.npy', 'b.npy',"
            " 'c.npy')); n.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-5)\"");
  EXPECT_EQ(compared.code, 0) << compared.said;
}

TEST_F(RunGemm, AnInputIsOverwrittenOnlyByForce) {
  save("a.npy", DType::f32, {4, 4});
  save("b.npy", DType::f32, {4, 4});
  save("c.npy", DType::f32, {4, 4});
  fs::create_symlink("a.npy", folder + "/link.npy");
  fs::create_hard_link(folder + "/a.npy", folder + "/hard.npy");
  const auto content = [&](const std::string& name) {
    std::ifstream file(folder + "/" + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string before = content("a.npy");
  const std::string place = fs::path(folder).filename().string();
  for (const std::string& output :
       {std::string("a.npy"), std::string("./a.npy"), "../" + place + "/a.npy", folder + "/a.npy",
        std::string("link.npy"), std::string("hard.npy")}) {
    const Ended ended = run("a.npy b.npy -o " + output);
    EXPECT_EQ(ended.code, 2) << output << ": " << ended.said;
    EXPECT_NE(ended.said.find("--force"), std::string::npos) << ended.said;
    EXPECT_NE(ended.said.find("the input a;"), std::string::npos) << ended.said;
    EXPECT_EQ(content("a.npy"), before) << output;
  }
  const Ended of_option = run("a.npy b.npy --c c.npy -o c.npy");
  EXPECT_EQ(of_option.code, 2) << of_option.said;
  EXPECT_NE(of_option.said.find("the input --c;"), std::string::npos) << of_option.said;
  // Another existing file is a previous result, and may be overwritten.
  save("old.npy", DType::f32, {1, 1});
  EXPECT_EQ(run("a.npy b.npy -o old.npy").code, 0);
  EXPECT_EQ(run("a.npy b.npy -o a.npy --force").code, 0);
  EXPECT_NE(content("a.npy"), before);
  EXPECT_EQ(content("a.npy"), content("old.npy"));
}

TEST_F(RunGemm, ErrorsSayWhatIsWrongAndLeaveNoFile) {
  save("a.npy", DType::f32, {4, 5});
  save("b.npy", DType::f32, {5, 3});
  save("narrow.npy", DType::f32, {4, 3});
  save("double.npy", DType::f64, {5, 3});
  save("small.npy", DType::u8, {5, 3});
  const std::string whole = [&] {
    std::ifstream file(folder + "/b.npy", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  std::ofstream(folder + "/cut.npy", std::ios::binary) << whole.substr(0, whole.size() - 6);
  std::ofstream(folder + "/text.npy") << "this is no array";
  std::string complex = whole;
  complex.replace(complex.find("<f4"), 3, "<c8");
  std::ofstream(folder + "/complex.npy", std::ios::binary) << complex;

  const struct {
    const char* words;
    const char* says;
    bool may_be_three;
  } cases[] = {
      {"a.npy narrow.npy -o out.npy", "4", false},
      {"a.npy double.npy -o out.npy", "f64", true},
      {"small.npy small.npy --transpose-a -o out.npy", "u8", true},
      {"a.npy cut.npy -o out.npy", "cut.npy", false},
      {"a.npy text.npy -o out.npy", "text.npy", false},
      {"a.npy complex.npy -o out.npy", "c8", true},
      {"a.npy none.npy -o out.npy", "none.npy", false},
      {"a.npy b.npy -o out.npy --beta 1", "--c", false},
      {"a.npy b.npy -o out.npy --rung nothing", "nothing", false},
      {"a.npy b.npy -o out.npy --activation swish", "relu", false},
      {"a.npy b.npy -o out.npy --alfa 2", "--alfa", false},
      {"a.npy b.npy -o out.npy --backend gpu", "simt", false},
      {"a.npy -o out.npy", "b is required", false},
      {"a.npy b.npy", "--output", false},
      {"a.npy b.npy -o out.png", "--output: out.png: a tensor of f32 4x3 is no picture", false},
  };
  for (const auto& one : cases) {
    const Ended ended = run(one.words);
    EXPECT_TRUE(ended.code == 2 || (one.may_be_three && ended.code == 3))
        << one.words << " ended with " << ended.code << ": " << ended.said;
    EXPECT_NE(ended.said.find(one.says), std::string::npos) << one.words << ": " << ended.said;
    EXPECT_FALSE(exists("out.npy")) << one.words;
  }
  const Ended nowhere = run("a.npy b.npy -o no/such/folder/out.npy");
  EXPECT_EQ(nowhere.code, 2) << nowhere.said;
  // No partially written file remains either.
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.path().extension(), ".npy") << entry.path();
  }
}

TEST_F(RunGemm, AxesAreListsOrDigitsAndCountFromTheEndToo) {
  save("x.npy", DType::f32, {2, 3, 4});
  const auto on = [&](const std::string& words) {
    return shell("cd " + folder + " && " RUNG_BINARY " run " + words).said;
  };
  for (const char* axes : {"0,2", "02", "0,-1", "-3,-1"}) {
    EXPECT_EQ(on("reduce x.npy -o y.npy --axes " + std::string(axes)), "y.npy: f32 3\n") << axes;
  }
  EXPECT_EQ(on("reduce x.npy -o y.npy --axes -1"), "y.npy: f32 2x3\n");
  for (const char* order : {"2,0,1", "201", "-1,0,1", "-1,-3,-2"}) {
    EXPECT_EQ(on("transpose x.npy -o y.npy --order " + std::string(order)), "y.npy: f32 4x2x3\n")
        << order;
  }
  for (const char* wrong : {"0,", ",0", "0,,1", "0,9", "-9,0,1", "a", "0;1", "0,1,"}) {
    for (const char* command : {"reduce x.npy --axes ", "transpose x.npy --order "}) {
      const std::string said = on(command + ("'" + std::string(wrong)) + "' -o no.npy");
      EXPECT_NE(said.find("accepted: axes from 0 to 7, or from -8 to -1"), std::string::npos)
          << command << wrong << ": " << said;
    }
  }
  EXPECT_NE(on("transpose x.npy -o no.npy --order -8,0,1").find("rung: transpose: "),
            std::string::npos);
  EXPECT_FALSE(exists("no.npy"));
}

TEST(Problem, OfWordsThatExcludeEachOtherOnlyOneIsTaken) {
  expect_refused({"check", "bench"},
                 {{"gemm", "f32 8x8x8,relu,gelu", 2, "has relu and gelu; accepted: one of them"},
                  {"gemm", "f32 8x8x8,tf32,split", 2, "has tf32 and split"},
                  {"elementwise", "f32 8,add,relu", 2, "has add and relu"},
                  {"reduce", "f32 8x8,sum,max", 2, "has sum and max"},
                  {"image", "u8 8x8x3,box,sobel", 2, "has box and sobel"},
                  {"gemm", "f32 8x8x8 ta", 2, "options follow a comma"}});
}

}  // namespace
}  // namespace rung::test
